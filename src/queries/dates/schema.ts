import { z } from 'zod';

/** The range of dates of a query. */
export const dateRangeSchema = z.strictObject({
  date_from: z.string().nullish(),
  date_to: z.string().nullish(),
  /** Takes both bounds as they are written, without rounding them to whole intervals. */
  explicitDate: z.boolean().nullish(),
});
export type DateRange = z.infer<typeof dateRangeSchema>;
