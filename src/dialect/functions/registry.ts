import { nearestName } from '../query_text.ts';
import { aggregates, windowFunctions } from './aggregates.ts';
import { arithmeticFunctions, bitFunctions } from './arithmetic.ts';
import { arrayFunctions } from './arrays.ts';
import { comparisonFunctions, conditionFunctions } from './conditions.ts';
import { conversionFunctions } from './conversions.ts';
import { dateArithmeticFunctions } from './date_arithmetic.ts';
import { datePartFunctions } from './date_parts.ts';
import { dateStartFunctions } from './date_starts.ts';
import type { FunctionDefinition } from './function_definition.ts';
import { gatheringAggregates, statisticAggregates } from './gathering_aggregates.ts';
import { jsonFunctions } from './json.ts';
import { lambdaFunctions } from './lambdas.ts';
import { tupleAndMapFunctions } from './maps.ts';
import { mathematicalFunctions } from './mathematics.ts';
import { searchFunctions, stringPartFunctions } from './search.ts';
import { stringFunctions } from './strings.ts';
import { timeFunctions } from './times.ts';
import { urlFunctions } from './urls.ts';

/** Combinators of aggregate names, which may be combined: `sumIf`, `avgOrNullIf`, `uniqArray`. */
const combinators = [
  ...(['If', 'OrNull', 'OrDefault', 'Distinct', 'Array', 'ForEach', 'Map', 'ArgMin', 'ArgMax'] as const),
];
export type Combinator = (typeof combinators)[number];

/** Combinators of ClickHouse that are not supported, with what to write instead. */
const unsupportedCombinators: Readonly<Record<string, string>> = {
  SimpleState: 'Aggregate the rows directly; aggregation states are not supported.',
  State: 'Aggregate the rows directly; aggregation states are not supported.',
  MergeState: 'Aggregate the rows directly; aggregation states are not supported.',
  Merge: 'Aggregate the rows directly; aggregation states are not supported.',
  Resample: 'Group by intDiv(key, step).',
};

/** Families of functions that are not supported, with what to write instead. */
const unsupportedFamilies: readonly (readonly [names: RegExp, instead: string])[] = [
  [/^(bitmap|subBitmap$|groupBitmap)/, 'Use arrays (arrayIntersect, arrayUniq) or uniqExact(…).'],
  [/^h3[A-Z]|H3$|^geohash/, 'Cells of H3 and geohash are not supported; use pointInPolygon(…).'],
  [
    /^(multiFuzzyMatch|ngram(Distance|Search))/,
    'Approximate search is not supported; use match(…) or ilike.',
  ],
  [
    /^median(TDigest|Timing|Deterministic|BFloat16|ExactWeighted|ExactExclusive|InterpolatedWeighted)/,
    'Use median(…), which is exact.',
  ],
  [
    /^quantile(TDigest|Timing|Deterministic|BFloat16|ExactWeighted|ExactExclusive|InterpolatedWeighted)/,
    'Use quantile(level)(…), which is exact.',
  ],
  [
    /^quantiles(TDigest|Timing|Deterministic|BFloat16|ExactWeighted|ExactExclusive|InterpolatedWeighted)/,
    'Use quantiles(level, …)(…), which are exact.',
  ],
  [
    /^tuple(Plus|Minus|Multiply|Divide|Negate|HammingDistance)/,
    'Write the arithmetic: (a.1 + b.1, a.2 + b.2).',
  ],
  [
    /^(L1|L2|Linf|Lp)(Norm|Distance|Normalize)$|^(cosineDistance|dotProduct)$/,
    'Use arrays: arraySum((x, y) -> x * y, a, b).',
  ],
  [/^(sip|farm|metro|murmur|xx|int|wy|java|hive)Hash/, 'PostgreSQL cannot compute this hash; use md5(…).'],
  [/^rowNumberIn(All)?Blocks?$/, 'Use row_number() OVER (ORDER BY …), which counts from 1.'],
  [/^sequence(Match|Count|NextNode)$/, 'Use windowFunnel(seconds)(timestamp, …), or a FunnelsQuery.'],
  [/^retention$/, 'Use countIf(…) > 0 for each condition.'],
  [/^convertCurrency$/, 'Exchange rates are not stored; multiply by a rate.'],
  [/^(tumble|hop|hopStart|hopEnd)$/, 'Use tumbleStart(…), tumbleEnd(…) or toStartOfInterval(…).'],
];

/** The array functions that equal an aggregate over all items of arrays. */
const arrayFunctionNames: Readonly<Record<string, string>> = {
  count: 'length',
  countDistinct: 'arrayUniq',
  uniq: 'arrayUniq',
  uniqExact: 'arrayUniq',
  uniqHLL12: 'arrayUniq',
  sum: 'arraySum',
  avg: 'arrayAvg',
  min: 'arrayMin',
  max: 'arrayMax',
  groupUniqArray: 'arrayDistinct',
  groupArray: 'arrayConcat',
};

/** The array function that an aggregate with `Array` stands for; null if there is none. */
export const arrayFunctionOf = (aggregate: string): string | null =>
  Object.hasOwn(arrayFunctionNames, aggregate) ? (arrayFunctionNames[aggregate] ?? null) : null;

/** All functions, without those formed by combinators. */
export const functionDefinitions: readonly FunctionDefinition[] = [
  ...aggregates,
  ...gatheringAggregates,
  ...statisticAggregates,
  ...windowFunctions,
  ...arithmeticFunctions,
  ...mathematicalFunctions,
  ...bitFunctions,
  ...comparisonFunctions,
  ...conditionFunctions,
  ...conversionFunctions,
  ...timeFunctions,
  ...datePartFunctions,
  ...dateStartFunctions,
  ...dateArithmeticFunctions,
  ...stringFunctions,
  ...searchFunctions,
  ...stringPartFunctions,
  ...urlFunctions,
  ...arrayFunctions,
  ...lambdaFunctions,
  ...tupleAndMapFunctions,
  ...jsonFunctions,
];

const byName = new Map(functionDefinitions.map((definition) => [definition.name, definition]));
const byLowerCaseName = new Map(
  functionDefinitions
    .filter(({ isCaseInsensitive }) => isCaseInsensitive)
    .map((definition) => [definition.name.toLowerCase(), definition]),
);

/** Aliases of functions. Those in lower case are of standard SQL and so case-insensitive. */
const functionAliases: Readonly<Record<string, string>> = {
  ceiling: 'ceil',
  truncate: 'trunc',
  substr: 'substring',
  mid: 'substring',
  lcase: 'lower',
  ucase: 'upper',
  character_length: 'lengthUTF8',
  char_length: 'lengthUTF8',
  dateadd: 'dateAdd',
  datesub: 'dateSub',
  datediff: 'dateDiff',
  timestampdiff: 'dateDiff',
  timestamp_diff: 'dateDiff',
  timestampadd: 'dateAdd',
  timestamp_add: 'dateAdd',
  timestampsub: 'dateSub',
  timestamp_sub: 'dateSub',
  flatten: 'arrayFlatten',
  toInt64: 'toInt',
  toInt32: 'toInt',
  toFloat64: 'toFloat',
  toFloat32: 'toFloat',
  toInt64OrNull: 'toInt',
  toFloat64OrNull: 'toFloat',
  toInt64OrZero: 'toIntOrZero',
  toFloat64OrZero: 'toFloatOrZero',
  toInt64OrDefault: 'toIntOrDefault',
  toFloat64OrDefault: 'toFloatOrDefault',
  toUUIDOrNull: 'toUUID',
  toDateOrNull: 'toDate',
  toDateTimeOrNull: 'toDateTime',
  parseDateTimeOrNull: 'parseDateTime',
  parseDateTimeBestEffortOrNull: 'parseDateTimeBestEffort',
  recording_button: 'recordingButton',
  stddev_pop: 'stddevPop',
  stddev_samp: 'stddevSamp',
  var_pop: 'varPop',
  var_samp: 'varSamp',
  jsonb_agg: 'json_agg',
  substringUTF8: 'substring',
  reverseUTF8: 'reverse',
  positionUTF8: 'position',
  positionCaseInsensitiveUTF8: 'positionCaseInsensitive',
  countSubstringsCaseInsensitiveUTF8: 'countSubstringsCaseInsensitive',
  multiSearchAnyUTF8: 'multiSearchAny',
  multiSearchAnyCaseInsensitiveUTF8: 'multiSearchAnyCaseInsensitive',
  isEmpty: 'empty',
  isNotEmpty: 'notEmpty',
  ltrim: 'trimLeft',
  rtrim: 'trimRight',
  btrim: 'trim',
  lpad: 'leftPad',
  rpad: 'rightPad',
  to_date: 'toDate',
  date_add: 'dateAdd',
  date_sub: 'dateSub',
  date_subtract: 'dateSub',
  current_timestamp: 'now',
  timezoneOf: 'timeZoneOf',
  width_bucket: 'widthBucket',
  percentile_cont: 'quantile',
  extractAllGroups: 'extractAllGroupsVertical',
  multiSearchAllPositionsUTF8: 'multiSearchAllPositions',
  multiSearchAllPositionsCaseInsensitiveUTF8: 'multiSearchAllPositionsCaseInsensitive',
  multiSearchFirstPositionUTF8: 'multiSearchFirstPosition',
  multiSearchFirstPositionCaseInsensitiveUTF8: 'multiSearchFirstPositionCaseInsensitive',
  multiSearchFirstIndexUTF8: 'multiSearchFirstIndex',
  multiSearchFirstIndexCaseInsensitiveUTF8: 'multiSearchFirstIndexCaseInsensitive',
  leftPadUTF8: 'leftPad',
  rightPadUTF8: 'rightPad',
  translateUTF8: 'translate',
  uniqTheta: 'uniq',
  nowInBlock: 'now',
  timeStampAdd: 'dateAdd',
  timeStampSub: 'dateSub',
  _toDate: 'toDate',
  _toInt32: 'toInt',
  _toInt64: 'toInt',
};

/** A function as a call refers to it. */
export interface FoundFunction {
  readonly definition: FunctionDefinition;
  /** The combinators of an aggregate name: `sumIf` takes a condition as its last argument. */
  readonly combinators: readonly Combinator[];
}

/** Finds a function by the name in a call; undefined if there is none. */
export function findFunction(name: string): FoundFunction | undefined {
  const definition = definitionOf(name);
  if (definition !== undefined) return { definition, combinators: [] };
  for (const combinator of combinators) {
    const stem = name.endsWith(combinator) ? findFunction(name.slice(0, -combinator.length)) : undefined;
    if (stem?.definition.kind === 'aggregate' && !stem.combinators.includes(combinator))
      return { definition: stem.definition, combinators: [...stem.combinators, combinator] };
  }
  return undefined;
}

/** What to write instead of a function that is not supported on purpose; null for other names. */
export const unsupportedHint = (name: string): string | null =>
  unsupportedFamilies.find(([names]) => names.test(name))?.[1] ?? unsupportedCombinatorHint(name);

/** What to write instead of an aggregate with an unsupported combinator; null for other names. */
function unsupportedCombinatorHint(name: string): string | null {
  if (name.endsWith('If')) return unsupportedCombinatorHint(name.slice(0, -2));
  for (const [combinator, instead] of Object.entries(unsupportedCombinators)) {
    const stem = name.endsWith(combinator) ? findFunction(name.slice(0, -combinator.length)) : undefined;
    if (stem?.definition.kind === 'aggregate') return instead;
  }
  return null;
}

function definitionOf(name: string): FunctionDefinition | undefined {
  const alias = Object.hasOwn(functionAliases, name) ? name : name.toLowerCase();
  const canonicalName = Object.hasOwn(functionAliases, alias) ? (functionAliases[alias] ?? name) : name;
  return byName.get(canonicalName) ?? byLowerCaseName.get(canonicalName.toLowerCase());
}

/** A suggestion for an unknown function name, or null. */
export function suggestFunction(name: string): string | null {
  const known = [
    ...functionDefinitions.filter(({ unsupported }) => unsupported === null).map((one) => one.name),
    ...aggregates.map((one) => `${one.name}If`),
    ...Object.keys(functionAliases),
  ];
  const near = nearestName(name, known);
  return near === null ? null : `Perhaps you meant '${near}(...)'?`;
}
