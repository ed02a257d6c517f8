/** What may stand behind the name of an aggregate, several of them too: `sumIf`, `avgOrNullIf`, `uniqArray`. */
export const combinators = ['If', 'OrNull', 'OrDefault', 'Distinct', 'Array'] as const;
export type Combinator = (typeof combinators)[number];

/** Those that analysts know and that are not to be had here, each with what to write instead. */
export const unsupportedCombinators: Readonly<Record<string, string>> = {
  ForEach: 'Use ARRAY JOIN with arrayEnumerate(…) and group by the index.',
  Map: 'Use sumMap, minMap or maxMap; for other aggregates use ARRAY JOIN mapKeys(…).',
  SimpleState: 'Aggregate the rows directly; aggregation states are not supported.',
  State: 'Aggregate the rows directly; aggregation states are not supported.',
  MergeState: 'Aggregate the rows directly; aggregation states are not supported.',
  Merge: 'Aggregate the rows directly; aggregation states are not supported.',
  ArgMin: 'Select the rows with LIMIT 1 BY in a subquery and aggregate those.',
  ArgMax: 'Select the rows with LIMIT 1 BY in a subquery and aggregate those.',
  Resample: 'Group by intDiv(key, step).',
};

/** What an aggregate of the items of arrays is: a function of all items together. */
const arrayFunctions: Readonly<Record<string, string>> = {
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

/** The function of one array that an aggregate with `Array` stands for; null where there is none. */
export const arrayFunctionOf = (aggregate: string): string | null =>
  Object.hasOwn(arrayFunctions, aggregate) ? (arrayFunctions[aggregate] ?? null) : null;
