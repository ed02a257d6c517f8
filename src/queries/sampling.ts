import { z } from 'zod';

const whatFactor = 'A sample is a share above 0 and up to 1, such as 0.1.';

/** The share of distinct ids whose events an insight reads; null for all of them. */
export const samplingFactorSchema = z
  .number()
  .gt(0, whatFactor)
  .max(1, whatFactor)
  .nullish()
  .transform((factor) => (factor === 1 ? null : (factor ?? null)));

/** How many there are of all, where so many are of a sample. */
export const countOfAll = (count: number, factor: number | null): number =>
  factor === null ? count : Math.round(count / factor);
