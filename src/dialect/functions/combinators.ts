/** What may stand behind the name of an aggregate, several of them too: `sumIf`, `avgOrNullIf`, `uniqArray`. */
export const combinators = ['If', 'OrNull', 'OrDefault', 'Distinct', 'Array'] as const;
export type Combinator = (typeof combinators)[number];

/** Those that analysts know and that are not to be had here, each with what to write instead. */
export const unsupportedCombinators: Readonly<Record<string, string>> = {
  ForEach: 'Write ARRAY JOIN with arrayEnumerate(…), and group by the place.',
  Map: 'There are sumMap, minMap and maxMap; for others write ARRAY JOIN mapKeys(…).',
  SimpleState: 'Aggregate the rows themselves: states are not kept.',
  State: 'Aggregate the rows themselves: states are not kept.',
  MergeState: 'Aggregate the rows themselves: states are not kept.',
  Merge: 'Aggregate the rows themselves: states are not kept.',
  ArgMin: 'Take the rows with LIMIT 1 BY in a subquery, and aggregate those.',
  ArgMax: 'Take the rows with LIMIT 1 BY in a subquery, and aggregate those.',
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
