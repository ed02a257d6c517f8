import { nearestName } from '../nearest_name.ts';
import { type Combinator, combinators, unsupportedCombinators } from './combinators.ts';
import type { FunctionDefinition } from './function_definition.ts';
import { aggregates } from './aggregates.ts';
import { arithmeticFunctions } from './arithmetic.ts';
import { arrayFunctions } from './arrays.ts';
import { bitFunctions } from './bits.ts';
import { comparisonFunctions } from './comparisons.ts';
import { conditionFunctions } from './conditions.ts';
import { conversionFunctions } from './conversions.ts';
import { dateArithmeticFunctions } from './date_arithmetic.ts';
import { datePartFunctions } from './date_parts.ts';
import { dateStartFunctions } from './date_starts.ts';
import { gatheringAggregates } from './gathering_aggregates.ts';
import { jsonFunctions } from './json.ts';
import { lambdaFunctions } from './lambdas.ts';
import { mathematicalFunctions } from './mathematics.ts';
import { searchFunctions } from './search.ts';
import { statisticAggregates } from './statistics.ts';
import { stringPartFunctions } from './string_parts.ts';
import { stringFunctions } from './strings.ts';
import { timeFunctions } from './times.ts';
import { tupleAndMapFunctions } from './tuples_and_maps.ts';
import { urlFunctions } from './urls.ts';
import { windowFunctions } from './window_functions.ts';

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

/** Aliases of functions. */
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
  flatten: 'arrayFlatten',
  toInt64: 'toInt',
  toInt32: 'toInt',
  toFloat64: 'toFloat',
  toFloat32: 'toFloat',
  stddev_pop: 'stddevPop',
  stddev_samp: 'stddevSamp',
  var_pop: 'varPop',
  var_samp: 'varSamp',
  jsonb_agg: 'json_agg',
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

/** What to write instead of an aggregate with an unsupported combinator; null for other names. */
export function unsupportedCombinatorHint(name: string): string | null {
  if (name.endsWith('If')) return unsupportedCombinatorHint(name.slice(0, -2));
  for (const [combinator, instead] of Object.entries(unsupportedCombinators)) {
    const stem = name.endsWith(combinator) ? findFunction(name.slice(0, -combinator.length)) : undefined;
    if (stem?.definition.kind === 'aggregate') return instead;
  }
  return null;
}

function definitionOf(name: string): FunctionDefinition | undefined {
  const canonicalName = Object.hasOwn(functionAliases, name) ? (functionAliases[name] ?? name) : name;
  return byName.get(canonicalName) ?? byLowerCaseName.get(canonicalName.toLowerCase());
}

/** A suggestion for an unknown function name, or null. */
export function suggestFunction(name: string): string | null {
  const near = nearestName(name, [...byName.keys(), ...Object.keys(functionAliases)]);
  return near === null ? null : `Perhaps you meant '${near}(...)'?`;
}
