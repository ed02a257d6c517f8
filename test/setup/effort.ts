/** How much work tests with random cases do, as a multiple of the usual; `npm run test:long` does twenty times as much. */
export const effort = Number(process.env.EXPORTD_TEST_EFFORT ?? 1);

/** The number of random cases of a property: `usual` in `npm test`, more in `npm run test:long`. */
export const randomCases = (usual: number): number => Math.ceil(usual * effort);

/** The cases of a matrix: `usual`, one of each kind, in `npm test`, and `all` in `npm run test:long`. */
export const casesOf = <Case>(usual: readonly Case[], all: readonly Case[]): readonly Case[] =>
  effort > 1 ? all : usual;
