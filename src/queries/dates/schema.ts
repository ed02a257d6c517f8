import { z } from 'zod';

/** The date range of a query. */
export const dateRangeSchema = z.strictObject({
  date_from: z.string().nullish(),
  date_to: z.string().nullish(),
  /** Uses both bounds exactly, without rounding to whole intervals. */
  explicitDate: z.boolean().nullish(),
});
export type DateRange = z.infer<typeof dateRangeSchema>;
