import { z } from 'zod';
import { listQuery, pathId, responseTimestampSchema } from '../schemas.ts';

/** What an index of PostgreSQL holds. */
const maxDistinctId = 2_704;
const maxDistinctIds = 100;

export const erasurePath = z.object({ project_id: z.string(), id: pathId });
export const erasureListQuery = listQuery;

export const erasureBody = z.strictObject({
  distinct_ids: z
    .array(z.string().min(1).max(maxDistinctId))
    .min(1)
    .max(maxDistinctIds)
    .describe('The distinct ids of the persons whose rows are erased, exactly as files have them.'),
});

const count = z.number().int();

/** An erasure in a list. */
export const erasureSchema = z
  .object({
    id: z.string(),
    status: z
      .enum(['Running', 'Completed', 'Incomplete'])
      .describe(
        '`Incomplete`: it has ended, and something could not be erased: see `failed` and `held`. Ask for another one once that is mended.',
      ),
    id_hashes: z
      .array(z.string())
      .describe('SHA-256 of the id of the erasure, a slash and each distinct id. The ids are stored sealed.'),
    requested_by: z.string().nullable().describe('E-mail address; null if the user is gone.'),
    progress: z.object({
      exports: count,
      exports_searched: count,
      intervals_searched: count,
      rows_searched: count,
      intervals_found: count.describe('Intervals whose files had rows of the persons.'),
      intervals_rewritten: count,
      rows_erased: count,
      objects_removed: count,
    }),
    failed: z
      .array(
        z.object({
          batch_export_id: z.string(),
          start: responseTimestampSchema,
          end: responseTimestampSchema,
          error: z.string(),
        }),
      )
      .describe('Intervals that are as they were, at most 100.'),
    held: z
      .array(
        z.object({
          batch_export_id: z.string(),
          object: z.string().nullable(),
          reason: z.string(),
          until: responseTimestampSchema
            .nullable()
            .describe('When exportd deletes it: object lock keeps it until then.'),
        }),
      )
      .describe(
        'Objects that could not be removed. One under an object lock is no longer listed once it was deleted; the certificate still names it.',
      ),
    created_at: responseTimestampSchema,
    finished_at: responseTimestampSchema.nullable(),
  })
  .meta({ id: 'Erasure' });
export type ErasureResponse = z.infer<typeof erasureSchema>;

/** An erasure with its certificate. */
export const certifiedErasureSchema = erasureSchema
  .extend({
    certificate: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'What was searched, found, rewritten, removed, held and verified. Null until the erasure has ended.',
      ),
  })
  .meta({ id: 'CertifiedErasure' });
export type CertifiedErasure = z.infer<typeof certifiedErasureSchema>;
