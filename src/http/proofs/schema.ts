import { z } from 'zod';
import { models } from '../../domain/batch_export.ts';
import { intervalStatuses } from '../intervals/schema.ts';
import { pathId, responseTimestampSchema } from '../schemas.ts';

export const proofPath = z.object({ project_id: z.string(), batch_export_id: pathId });

export const proofQuery = z.strictObject({
  month: z
    .string()
    .regex(/^[0-9]{4}-(0[1-9]|1[0-2])$/, 'Must be a month such as 2026-10.')
    .describe('In the time zone of the export, such as `2026-10`.'),
});

const count = z.number().int();
const fingerprint = z
  .object({ hash: z.string(), rows: count, sum: z.string() })
  .nullable()
  .describe('The sum of the hashes of all rows, whatever their order. Null where nothing was exported.');

const entrySchema = z.object({
  start: responseTimestampSchema,
  end: responseTimestampSchema,
  intervals: count.describe('1; of an export with more than 1,000 intervals in the month, those of a day.'),
  exported: count.describe('Those of them that are exported.'),
  status: z.enum(intervalStatuses).nullable().describe('Null if the intervals of a day have several.'),
  source_rows: count.describe('Rows that the source had when the interval was exported.'),
  file_rows: count.describe('Rows in the files.'),
  rejected_rows: count.describe('Rows that could not be encoded, in a file of their own.'),
  bytes: count,
  files: count,
  source_fingerprint: fingerprint,
  file_fingerprint: fingerprint.describe('Of the files and the rejected rows.'),
  is_equal: z.boolean().nullable().describe('Whether the fingerprints are equal; null without both.'),
  exported_at: responseTimestampSchema.nullable().describe('The newest export.'),
  compared_at: responseTimestampSchema
    .nullable()
    .describe('The newest comparison with the source after the export.'),
  differing: count.describe('Intervals whose newest comparison found a difference.'),
});

const allowanceSchema = z.object({
  kind: z
    .enum(['fewer_rows', 'acknowledged'])
    .describe(
      '`fewer_rows`: an export was allowed to remove rows. `acknowledged`: a difference was explained.',
    ),
  start: responseTimestampSchema,
  end: responseTimestampSchema,
  at: responseTimestampSchema,
  by: z.string().nullable().describe('E-mail address; null if it is not known.'),
  rows_before: count.nullable().describe('Rows of the generation before.'),
  rows_after: count.nullable(),
  reason: z.string().nullable(),
});

const verificationSchema = z.object({
  start: responseTimestampSchema,
  end: responseTimestampSchema,
  at: responseTimestampSchema,
  every_value: z.boolean(),
  is_equal: z.boolean(),
  by: z.string().nullable(),
});

/** What exportd states of a month of an export. */
const proofSchema = z.object({
  version: z.literal(1),
  issued_at: responseTimestampSchema,
  project: z.object({ id: count, name: z.string() }),
  batch_export: z.object({ id: z.string(), name: z.string(), model: z.enum(models), interval: z.string() }),
  destination: z.object({
    bucket: z.string(),
    prefix: z.string(),
    on_missing_rows: z.string().describe('Whether runs may remove rows from the bucket without a person.'),
  }),
  month: z.string(),
  timezone: z.string(),
  start: responseTimestampSchema,
  end: responseTimestampSchema.describe(
    'The end of the month, or when the proof was issued if that is earlier.',
  ),
  totals: z.object({
    intervals: count,
    exported: count,
    source_rows: count,
    file_rows: count,
    rejected_rows: count,
    bytes: count,
    files: count,
    unequal: count.describe(
      'Intervals whose fingerprints differ, or whose newest comparison found a difference.',
    ),
    holes: count.describe('Intervals that are not exported.'),
  }),
  entries: z.array(entrySchema).describe('Oldest first.'),
  holes: z
    .array(
      z.object({
        start: responseTimestampSchema,
        end: responseTimestampSchema,
        reason: z.string().describe('The status of the interval, or `never_exported`.'),
      }),
    )
    .describe('What is not exported, oldest first.'),
  verifications: z.array(verificationSchema).describe('The newest of each interval that a person verified.'),
  allowed: z.array(allowanceSchema).describe('Who allowed which rows to go, oldest first.'),
});
export type Proof = z.infer<typeof proofSchema>;
export type ProofEntry = Proof['entries'][number];

export const signedProofSchema = z
  .object({
    proof: proofSchema,
    signature: z.object({
      algorithm: z.literal('Ed25519'),
      key_id: z.string(),
      public_key: z
        .string()
        .describe('32 bytes in base64. Compare it with the one that the sender publishes.'),
      value: z.string().describe('Signature of the canonical JSON (RFC 8785) of `proof`, in base64.'),
    }),
  })
  .meta({ id: 'SignedProof' });
export type SignedProof = z.infer<typeof signedProofSchema>;

export const proofKeySchema = z
  .object({
    key_id: z.string(),
    public_key: z.string(),
    first_used_at: responseTimestampSchema,
    is_current: z.boolean().describe('Whether new proofs are signed with it.'),
  })
  .meta({ id: 'ProofKey' });
