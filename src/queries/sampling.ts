import { z } from 'zod';

const invalidFactor = 'The sampling factor must be greater than 0 and at most 1, such as 0.1.';

/** The share of distinct ids whose events an insight reads; null for all. */
export const samplingFactorSchema = z
  .number()
  .gt(0, invalidFactor)
  .max(1, invalidFactor)
  .nullish()
  .transform((factor) => (factor === 1 ? null : (factor ?? null)));

/** Extrapolates a count over a sample to all events. */
export const countOfAll = (count: number, factor: number | null): number =>
  factor === null ? count : Math.round(count / factor);
