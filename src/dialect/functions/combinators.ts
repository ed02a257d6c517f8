/** Combinators of aggregate names, which may be combined: `sumIf`, `avgOrNullIf`, `uniqArray`. */
export const combinators = ['If', 'OrNull', 'OrDefault', 'Distinct', 'Array'] as const;
export type Combinator = (typeof combinators)[number];

/** Combinators of ClickHouse that are not supported, with what to write instead. */
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

/** The array functions that equal an aggregate over all items of arrays. */
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

/** The array function that an aggregate with `Array` stands for; null if there is none. */
export const arrayFunctionOf = (aggregate: string): string | null =>
  Object.hasOwn(arrayFunctions, aggregate) ? (arrayFunctions[aggregate] ?? null) : null;
