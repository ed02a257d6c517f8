/** How much work tests with random cases do, as a multiple of the usual; `npm run test:long` does twenty times as much. */
export const effort = Number(process.env.EXPORTD_TEST_EFFORT ?? 1);

/** The number of random cases of a property: `usual` in `npm test`, more in `npm run test:long`. */
export const randomCases = (usual: number): number => Math.ceil(usual * effort);
