import * as z from 'zod';
import { differenceDecisions } from '../../domain/difference.ts';
import { responseTimestampSchema } from '../schemas.ts';
import { decisionSchema } from './schema.ts';

/** The rows of an interval that its files have and the source lacks. */
export const differenceSchema = z
  .object({
    data_interval_start: responseTimestampSchema,
    data_interval_end: responseTimestampSchema,
    missing_rows: z.number().int().describe('Rows of the files that the source lacks.'),
    is_exact: z
      .boolean()
      .describe(
        'Whether rows were compared by key. Otherwise at least as many are missing, and none is listed.',
      ),
    rows: z
      .array(z.object({ id: z.string(), inserted_at: z.string() }))
      .describe('The first 100 of them, by the time at which the source had received them.'),
    last_inserted_at: z.string().nullable(),
    decision: decisionSchema,
  })
  .meta({ id: 'BatchExportDifference' });
export type DifferenceResponse = z.infer<typeof differenceSchema>;

/** Decides about the rows of a difference. */
export const differenceBody = z.strictObject({
  decision: z
    .enum(differenceDecisions)
    .describe(
      '`keep`: the files stay as they are. `remove`: the interval is exported again without these rows.',
    ),
  reason: z.string().trim().min(1).max(1_000).describe('Why. It is shown with the interval.'),
  rows: z
    .number()
    .int()
    .min(0)
    .optional()
    .describe('The number of these rows, which has to be right. Required to remove them.'),
});
