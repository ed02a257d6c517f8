import * as z from 'zod';
import type { JsonValue } from '../../domain/event.ts';
import { refreshNames } from '../../queries/freshness.ts';
import { responseTimestampSchema } from '../schemas.ts';

/** Paths below `/query/` that cannot be ids. */
const reservedIds = new Set(['check_auth_for_async', 'draft_sql', '.', '..']);

/** An id that a client chooses for its query. */
const clientQueryId = z
  .string()
  .min(1, 'This field may not be blank.')
  .max(200, 'Must be at most 200 characters.')
  .regex(/^\P{C}*$/u, 'Control characters are not allowed.')
  .refine((id) => !reservedIds.has(id), 'This id is reserved. Use another id.')
  // Readers of the document in Python know no categories of characters: this allows a few more.
  .meta({ pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$' })
  .describe(`Not one of ${[...reservedIds].map((id) => `\`${id}\``).join(', ')}.`);

/** Any JSON value, as the body already is: a schema of all its parts would take hundreds of milliseconds. */
const jsonValue = z.unknown().meta({ id: 'JsonValue' }) as z.ZodType<JsonValue>;

/** A query. Its kind defines its other fields. */
export const queryField = z
  .looseObject({ kind: z.string() })
  .describe('The query to run: its `kind` and the fields of that kind.');

/** The body of a request to the query endpoint. */
export const queryBody = z
  .strictObject({
    query: queryField,
    refresh: z
      .enum(refreshNames)
      .nullish()
      .describe(
        'Controls caching and whether the query runs in the background. `blocking` (the default) and `force_blocking` calculate synchronously; `async`, `lazy_async` and `force_async` calculate in the background; `force_cache` never calculates. The `force_` modes other than `force_cache` ignore cached results.',
      ),
    async: z.boolean().nullish().describe('True is the same as `refresh: async`.'),
    client_query_id: clientQueryId
      .nullish()
      .describe('An id chosen by the client, to retrieve the status of the query or cancel it.'),
    filters_override: z
      .strictObject({
        date_from: z.string().nullish(),
        date_to: z.string().nullish(),
        properties: z.array(jsonValue).nullish(),
      })
      .nullish()
      .describe('Dates that replace those of the query, and property filters that are added to its own.'),
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
          'Must be an object such as {"value": "DE"}.',
        ),
      )
      .nullish()
      .describe("Values of the query's variables, keyed by the variable's id or code name."),
  })
  .meta({ id: 'QueryRequest' });
export type QueryBody = z.infer<typeof queryBody>;

export const queryPath = z.object({ project_id: z.string(), id: z.string() });

export const statusQuery = z.object({
  show_progress: z
    .enum(['true', 'false'])
    .optional()
    .describe('Accepted for compatibility; `query_progress` is always present while a query runs.'),
});

/** The status of a query. */
const queryStatusSchema = z
  .object({
    id: z.string(),
    query_async: z.boolean().describe('Whether it runs in the background.'),
    team_id: z.number().int(),
    insight_id: z.null(),
    dashboard_id: z.null(),
    labels: z.null(),
    complete: z.boolean().describe('Whether the query has ended, successfully or not.'),
    error: z.boolean(),
    error_message: z.string().nullable(),
    results: z
      .looseObject({})
      .nullable()
      .describe('The whole response, once the query is complete. Set only when the query is retrieved.'),
    start_time: responseTimestampSchema,
    pickup_time: responseTimestampSchema.nullable().describe('When the query started to run.'),
    end_time: responseTimestampSchema.nullable(),
    expiration_time: responseTimestampSchema
      .nullable()
      .describe('When the status of an ended query expires.'),
    task_id: z.string().nullable().describe('The id of the workflow that runs the query.'),
    query_progress: z
      .object({
        bytes_read: z.number().int(),
        rows_read: z.number().int(),
        estimated_rows_total: z.number().nullable(),
        time_elapsed: z.number().describe('Seconds since the query started to run.'),
        active_cpu_time: z.number().nullable(),
      })
      .nullable()
      .describe('Set while the query runs.'),
  })
  .meta({ id: 'QueryStatus' });

/** The response of retrieving a query. */
export const retrievedQuerySchema = z
  .object({ query_status: queryStatusSchema })
  .meta({ id: 'QueryStatusResponse' });

/**
 * The response of creating a query: the result of the query; on a cache miss the cache key and the status of the query
 * that was started; for `force_async` only the status.
 */
export const queryResponseSchema = z
  .looseObject({
    results: z
      .union([z.array(z.unknown()), z.looseObject({})])
      .optional()
      .describe('Rows or series; one JSON value for query kinds without rows.'),
    columns: z.array(z.string()).nullish(),
    types: z.array(z.unknown()).nullish(),
    hasMore: z.boolean().optional().describe('True when rows were cut.'),
    limit: z.number().int().nullish(),
    offset: z.number().int().nullish(),
    dialect_query: z.string().nullish().describe('The query as text of the SQL dialect.'),
    notice: z.string().nullish().describe('A hint about the result, such as how to get more rows.'),
    timezone: z.string().optional(),
    timings: z
      .array(z.object({ k: z.string(), t: z.number() }))
      .optional()
      .describe(
        'Seconds that the calculation took: `schema` (reading what the source has), `statements` (waiting for rows), `computation` (the rest) and `total`.',
      ),
    explain: z
      .looseObject({})
      .optional()
      .describe(
        'With `explain: true` in the query: what its statements cost in PostgreSQL, which then runs them a second time. Seconds, bytes, the steps of the plan with their rows, and `advice`: sentences that say which index, view or setting would make it faster.',
      ),
    is_cached: z.boolean().optional(),
    cache_key: z.string().optional(),
    last_refresh: responseTimestampSchema.optional(),
    next_allowed_client_refresh: responseTimestampSchema.optional(),
    query_status: queryStatusSchema
      .nullable()
      .describe('The background query that calculates the same result, if any.'),
  })
  .meta({ id: 'QueryResponse' });

/** The parameters of a draft. */
export const draftSqlQuery = z.object({
  prompt: z.string().optional().describe('A question in plain English, at most 400 characters.'),
  current_query: z
    .string()
    .optional()
    .describe('The query that the prompt refers to. Only a language model reads it.'),
});

/** A drafted query. */
export const draftedSqlSchema = z
  .object({ sql: z.string().describe('A query in the SQL dialect that compiles for the project.') })
  .meta({ id: 'DraftedSql' });
