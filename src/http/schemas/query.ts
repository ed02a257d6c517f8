import { z } from 'zod';
import type { JsonValue } from '../../domain/json_value.ts';
import { refreshNames } from '../../queries/refresh_modes.ts';
import { responseTimestamp } from './common.ts';

/** Names below `/query/` that are operations and cannot be ids. */
const reservedIds = new Set(['check_auth_for_async', 'draft_sql', '.', '..']);

/** An id that a client gives to its query. */
const clientQueryId = z
  .string()
  .min(1, 'This field may not be blank.')
  .max(200, 'Must be at most 200 characters.')
  .regex(/^\P{C}*$/u, 'Control characters are not allowed.')
  .refine((id) => !reservedIds.has(id), 'This id is reserved; use another one.');

const jsonValue: z.ZodType<JsonValue> = z.json();

/** The body of a request to the query endpoint. What a query's own members are is for its kind to say. */
export const queryBody = z
  .strictObject({
    query: z
      .looseObject({ kind: z.string() })
      .describe('The query to run: its `kind`, and the members of that kind.'),
    refresh: z
      .enum(refreshNames)
      .nullish()
      .describe(
        'Whether a cached answer will do, and what happens where there is none fresh enough. `blocking` (the default) and `force_blocking` calculate while the caller waits; `async`, `lazy_async` and `force_async` in the background; `force_cache` never calculates.',
      ),
    async: z.boolean().nullish().describe('True stands for `refresh: async`.'),
    client_query_id: clientQueryId
      .nullish()
      .describe('Under this id the status of the query can be asked for, and the query be cancelled.'),
    filters_override: z
      .strictObject({
        date_from: z.string().nullish(),
        date_to: z.string().nullish(),
        properties: z.array(jsonValue).nullish(),
      })
      .nullish()
      .describe('Dates that stand in the place of those of the query, and property filters beside its own.'),
    variables_override: z
      .record(
        z.string(),
        z.strictObject(
          {
            variableId: z.string().nullish(),
            code_name: z.string().nullish(),
            value: jsonValue.optional(),
            isNull: z.boolean().nullish(),
          },
          'This must be an object such as {"value": "DE"}.',
        ),
      )
      .nullish()
      .describe("Values of the query's variables, by a variable's id or code name."),
  })
  .meta({ id: 'QueryRequest' });
export type QueryBody = z.infer<typeof queryBody>;

export const queryPath = z.object({ project_id: z.string(), id: z.string() });

export const statusQuery = z.object({
  show_progress: z
    .enum(['true', 'false'])
    .optional()
    .describe('Accepted for clients that send it; `query_progress` is there while a query runs in any case.'),
});

/** Where a query is. */
const queryStatusSchema = z
  .object({
    id: z.string(),
    query_async: z.boolean().describe('Whether it runs in the background.'),
    team_id: z.number().int(),
    insight_id: z.null(),
    dashboard_id: z.null(),
    labels: z.null(),
    complete: z.boolean().describe('Whether it has ended, also with an error.'),
    error: z.boolean(),
    error_message: z.string().nullable(),
    results: z
      .looseObject({})
      .nullable()
      .describe('The whole answer, once the query is complete, where its status is retrieved.'),
    start_time: responseTimestamp,
    pickup_time: responseTimestamp.nullable().describe('When it began to run.'),
    end_time: responseTimestamp.nullable(),
    expiration_time: responseTimestamp
      .nullable()
      .describe('Until when the status of a query that ended is kept.'),
    task_id: z.string().nullable().describe('The id of its workflow.'),
    query_progress: z
      .object({
        bytes_read: z.number().int(),
        rows_read: z.number().int(),
        estimated_rows_total: z.number().nullable(),
        time_elapsed: z.number().describe('Seconds since it began to run.'),
        active_cpu_time: z.number().nullable(),
      })
      .nullable()
      .describe('While it runs.'),
  })
  .meta({ id: 'QueryStatus' });

/** What retrieving a query answers. */
export const retrievedQuerySchema = z
  .object({ query_status: queryStatusSchema })
  .meta({ id: 'QueryStatusResponse' });

/**
 * What creating a query answers: the answer of the query; with a cache miss the cache's key and the status of what was
 * started; for `force_async` the status alone.
 */
export const queryResponseSchema = z
  .looseObject({
    results: z
      .union([z.array(z.unknown()), z.looseObject({})])
      .optional()
      .describe('Rows or series; one document where the kind of query has no rows.'),
    columns: z.array(z.string()).nullish(),
    types: z.array(z.unknown()).nullish(),
    hasMore: z.boolean().optional().describe('Whether there are more rows than the answer has.'),
    limit: z.number().int().nullish(),
    offset: z.number().int().nullish(),
    dialect_query: z.string().nullish().describe('The query printed in the dialect.'),
    notice: z.string().nullish().describe('What to know of the answer, such as where to get more rows.'),
    timezone: z.string().optional(),
    is_cached: z.boolean().optional(),
    cache_key: z.string().optional(),
    last_refresh: responseTimestamp.optional(),
    next_allowed_client_refresh: responseTimestamp.optional(),
    query_status: queryStatusSchema
      .nullable()
      .describe('The query in the background that computes the same, where there is one.'),
  })
  .meta({ id: 'QueryResponse' });
