/**
 * How much of their work tests with random cases do: a quarter of it in `npm test`, which runs often, and twenty times
 * of it in `npm run test:long`.
 */
export const effort = Number(process.env.EXPORTD_TEST_EFFORT ?? 0.25);

/** The number of random cases of a property, of which `full` are its full work. */
export const randomCases = (full: number): number => Math.ceil(full * effort);
