import * as z from 'zod';
import { models } from '../../domain/batch_export.ts';

/** Whether exports of a model can read the source, and how to fix what they cannot. */
export const sourceReportSchema = z.object({
  ok: z.boolean(),
  relations: z.array(
    z.object({
      setting: z.string().describe('The setting that names the relation.'),
      relation: z.string(),
      kind: z.string().nullable().describe('Such as table or view; null if it does not exist.'),
    }),
  ),
  findings: z.array(
    z.object({
      level: z.enum(['error', 'warning']),
      subject: z.string(),
      column: z.string().nullable(),
      message: z.string(),
      sql: z.string().nullable().describe('Statements that fix it.'),
    }),
  ),
  views: z.array(
    z.object({ setting: z.string(), name: z.string(), sql: z.string(), to_choose: z.array(z.string()) }),
  ),
  tables: z
    .array(z.string())
    .describe(
      'Relations that may have the events, while the configured one does not exist. Empty for keys without `source:read`.',
    ),
});
export type SourceReportResponse = z.infer<typeof sourceReportSchema>;

export const sourceCheckQuery = z.object({
  model: z.enum(models).default('events'),
  table: z.string().optional().describe('One of `tables`: the view is drafted over it.'),
});

/** Longer than a name of PostgreSQL with its schema, both in quotes. */
const maxName = 300;

export const sourceMapBody = z
  .strictObject({
    table: z
      .string()
      .max(maxName)
      .optional()
      .describe('One of `tables`; without it, only those are returned.'),
    columns: z
      .record(z.string().max(maxName), z.string().max(maxName))
      .optional()
      .describe('Columns of the table that are given to columns of events, by the names of those.'),
  })
  .meta({ id: 'SourceMap' });

/** A table whose columns are given to columns of events. */
export const sourceMappingSchema = z.object({
  tables: z
    .array(z.string())
    .describe('Tables of the source with a column of a time, those with most rows first; at most 50.'),
  mapping: z
    .object({
      columns: z.array(z.object({ name: z.string(), type: z.string() })).describe('Those of the table.'),
      roles: z.array(
        z.object({
          name: z.string(),
          type: z.string(),
          why: z.string().describe('What exports do with it.'),
          sql: z.string().describe('The expression of the view.'),
          comment: z.string().nullable().describe('What a person has to know about it.'),
        }),
      ),
      view: z.string().describe('The name of the view.'),
      setting: z.string().describe('The setting that names what exportd reads.'),
      is_read: z
        .boolean()
        .describe('Whether exportd reads a view of this name, so that no setting has to change.'),
      to_choose: z.array(z.string()).describe('Columns of events for which a column has to be chosen.'),
      script: z.string().describe('Creates the view, its index and its grants.'),
      rows: z
        .array(z.record(z.string(), z.string().nullable()))
        .nullable()
        .describe(
          'The first 20 rows of the view as text, by its columns. Null while columns have to be chosen.',
        ),
    })
    .nullable(),
});
export type SourceMappingResponse = z.infer<typeof sourceMappingSchema>;
