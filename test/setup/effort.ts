/** How much work tests with random cases do, as a multiple of the usual; `npm run test:long` does twenty times as much. */
export const effort = Number(process.env.EXPORTD_TEST_EFFORT ?? 1);

/** The number of random cases of a property: `usual` in `npm test`, more in `npm run test:long`. */
export const randomCases = (usual: number): number => Math.ceil(usual * effort);

/** One value of each factor. */
type Combination<Factors extends Readonly<Record<string, readonly unknown[]>>> = {
  readonly [Name in keyof Factors]: Factors[Name][number];
};

/**
 * The cases of a matrix of independent factors: all combinations in `npm run test:long`; in `npm test` as few as there is a case
 * for each two values of two factors. What fails depends on one value or on two: all of three are never the first to show it.
 */
export function pairsOf<Factors extends Readonly<Record<string, readonly unknown[]>>>(
  factors: Factors,
): readonly Combination<Factors>[] {
  const counts = Object.values(factors).map(({ length }) => length);
  // A combination as the position of each factor's value.
  const all = counts.reduce<number[][]>(
    (rows, count) => rows.flatMap((row) => Array.from({ length: count }, (_, at) => [...row, at])),
    [[]],
  );
  const pairsIn = (row: readonly number[]) =>
    row.flatMap((one, at) =>
      row.slice(at + 1).map((other, after) => `${at}:${one} ${at + 1 + after}:${other}`),
    );
  const missing = new Set(all.flatMap(pairsIn));
  const missingIn = (row: readonly number[]) => pairsIn(row).filter((pair) => missing.has(pair)).length;
  const chosen: number[][] = [];
  while (missing.size > 0) {
    const best = all.reduce((one, other) => (missingIn(other) > missingIn(one) ? other : one));
    for (const pair of pairsIn(best)) missing.delete(pair);
    chosen.push(best);
  }
  const names = Object.keys(factors);
  return (effort > 1 ? all : chosen).map(
    (row) =>
      Object.fromEntries(
        names.map((name, at) => [name, factors[name]?.[row[at] ?? 0]]),
      ) as Combination<Factors>,
  );
}

/** The cases of a matrix: `usual`, one of each kind, in `npm test`, and `all` in `npm run test:long`. */
export const casesOf = <Case>(usual: readonly Case[], all: readonly Case[]): readonly Case[] =>
  effort > 1 ? all : usual;
