import * as z from 'zod';
import { responseTimestampSchema } from '../schemas.ts';

const count = z.number().int();

/** A verification of an interval: what `exportd verify` reports of it. */
export const verificationSchema = z
  .object({
    id: z.string(),
    deep: z.boolean().describe('Whether all values were compared, not only the presence of rows.'),
    status: z.enum(['pending', 'completed', 'failed']),
    error: z.string().nullable().describe('Why it failed.'),
    created_at: responseTimestampSchema,
    finished_at: responseTimestampSchema.nullable(),
    report: z
      .object({
        ok: z.boolean(),
        rows: count,
        files: count,
        bytes: count,
        missing: count,
        duplicate: count,
        unexpected: count,
        mismatched: count,
        findings: z
          .array(
            z.object({
              kind: z.string(),
              object: z.string().nullable(),
              count,
              detail: z.string(),
              rows: z.array(z.object({ id: z.string(), column: z.string().optional() })),
            }),
          )
          .describe('The first 50.'),
        notes: z.array(z.string()).describe('The first 50.'),
      })
      .nullable(),
  })
  .meta({ id: 'BatchExportVerification' });
export type VerificationResponse = z.infer<typeof verificationSchema>;

/** The newest verifications of an interval, newest first. */
export const verificationsSchema = z.object({ results: z.array(verificationSchema) });
export type VerificationsResponse = z.infer<typeof verificationsSchema>;

export const verificationBody = z.strictObject({
  deep: z.boolean().optional().describe('Compare all values, not only the presence of rows.'),
});
