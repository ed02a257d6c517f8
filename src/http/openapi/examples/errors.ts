import { ApiError, invalid, notFound } from '../../api_error.ts';
import { ids, type Examples } from './example.ts';

/** What decides which errors an operation can respond with. */
export interface OperationTraits {
  /** Whether its path has the id of a resource. */
  readonly hasPathId: boolean;
  readonly hasBody: boolean;
  /** Whether it submits a command, which the schedule of an export applies. */
  readonly isCommand: boolean;
  /** Whether it can be a dry run. */
  readonly readsSource: boolean;
  /** Whether it compiles or runs a query. */
  readonly isQuery: boolean;
  readonly isDraft: boolean;
  /** Whether a worker carries it out while the request waits: a test of a destination or webhook. */
  readonly isTest: boolean;
}

const always: readonly ApiError[] = [
  new ApiError(
    401,
    'not_authenticated',
    'No API key was sent. Send the header "Authorization: Bearer <personal API key>".',
  ),
  new ApiError(401, 'authentication_failed', 'The personal API key is unknown or revoked.'),
  new ApiError(403, 'permission_denied', "The API key lacks the required scope 'batch_export:write'."),
  invalid('Must be at least 1.', 'limit'),
  new ApiError(405, 'method_not_allowed', 'Method PUT is not allowed. Allowed methods: GET, HEAD, POST.'),
  new ApiError(500, 'error', 'A server error occurred.'),
  new ApiError(503, 'unavailable', 'The control database is not available. Retry in a few seconds.'),
];

const ofPathIds: readonly ApiError[] = [
  notFound(),
  new ApiError(
    500,
    'unreadable',
    'This version of exportd cannot read the batch export, which a newer version may have stored. ' +
      "The server's log has the reason.",
  ),
];

const ofBodies: readonly ApiError[] = [
  new ApiError(400, 'required', 'This field is required.', { attr: 'name' }),
  new ApiError(400, 'parse_error', 'JSON parse error: Unexpected end of JSON input'),
  new ApiError(413, 'payload_too_large', 'The body exceeds the limit of 1048576 bytes.'),
  new ApiError(415, 'unsupported_media_type', 'Unsupported content type. Send the body as application/json.'),
];

const ofCommands: readonly ApiError[] = [
  new ApiError(409, 'conflict', `Run ${ids.run} of this interval is still active.`),
  new ApiError(
    409,
    'idempotency_key_reused',
    'This Idempotency-Key was already used for a different request. Use a new key.',
  ),
  new ApiError(
    429,
    'too_many_concurrent_backfills',
    'This project already has 10 unfinished backfills (EXPORTD_MAX_BACKFILLS_PER_PROJECT). Wait for some to finish or cancel them.',
  ),
  new ApiError(500, 'internal_error', 'exportd met an unexpected error. The log of a worker has the cause.'),
  new ApiError(
    503,
    'temporal_unreachable',
    'Temporal cannot be reached. Nothing was changed. Retry in a few seconds.',
  ),
  new ApiError(503, 'withdrawn', 'The command was withdrawn before it was applied. Retry the request.'),
];

/** Dry runs count the rows of the source. */
const ofSourceReads: readonly ApiError[] = [
  new ApiError(503, 'source_unreachable', 'The source database cannot be reached. Retry later.'),
  new ApiError(
    503,
    'source_rejected',
    'PostgreSQL refused to read the source: permission denied for view exportd_events (SQLSTATE 42501). "exportd source check" prints how to fix the relation.',
  ),
];

const ofQueries: readonly ApiError[] = [
  new ApiError(400, 'dialect_error', 'Unknown field evnt. Did you mean event?', { attr: 'query__query' }),
  new ApiError(400, 'not_supported', 'Filters of type recording are not supported.', {
    attr: 'query__properties__0__type',
  }),
  new ApiError(400, 'query_failed', 'The query failed: division by zero.'),
  new ApiError(
    400,
    'query_timeout',
    'The query took longer than 60 seconds. Restrict its dates, or run it in the background.',
  ),
  new ApiError(
    400,
    'result_too_large',
    'The result is larger than 33554432 bytes (EXPORTD_QUERY_MAX_RESULT_SIZE). Select fewer columns or rows, or use a batch export for large amounts of data.',
  ),
  new ApiError(
    400,
    'unknown_variable',
    'Neither the project nor the query has a variable with this id or code name.',
    { attr: 'variables_override__country' },
  ),
  new ApiError(409, 'conflict', 'A running query has this id. Cancel it or use another id.', {
    attr: 'client_query_id',
  }),
  new ApiError(
    429,
    'throttled',
    'Rate limit exceeded: a project can run 120 queries per hour (EXPORTD_QUERIES_PER_HOUR). Retry in 240 seconds. For large volumes of data, use a batch export.',
  ),
  new ApiError(
    503,
    'temporal_unreachable',
    'Background queries cannot be started at the moment. The query was not started. Try again later.',
  ),
];

const ofDrafts: readonly ApiError[] = [
  new ApiError(400, 'too_long', 'A prompt can have at most 400 characters.', { attr: 'prompt' }),
  new ApiError(400, 'unclear', 'The prompt names no event of the project.', { attr: 'prompt' }),
];

const ofTests: readonly ApiError[] = [
  new ApiError(
    503,
    'not_tested',
    'No worker has tested the destination in time. Check that the workers run. Retry later.',
  ),
  new ApiError(
    503,
    'temporal_unreachable',
    'Temporal cannot be reached. Nothing was tested. Retry in a few seconds.',
  ),
];

/** Every error that the API responds with, so that none lacks an example. */
export const allErrors: readonly ApiError[] = [
  ...always,
  ...ofPathIds,
  ...ofBodies,
  ...ofCommands,
  ...ofSourceReads,
  ...ofQueries,
  ...ofDrafts,
  ...ofTests,
];

/**
 * The examples of an operation's error responses, as `4XX` and `5XX` of the document.
 * @param ownErrors those that no other operation has
 */
export function errorExamples(
  traits: OperationTraits,
  ownErrors: readonly ApiError[] = [],
): Readonly<Record<'4XX' | '5XX', Examples>> {
  const errors = [
    ...always,
    ...(traits.hasPathId ? ofPathIds : []),
    ...(traits.hasBody ? ofBodies : []),
    ...(traits.isCommand ? ofCommands : []),
    ...(traits.readsSource ? ofSourceReads : []),
    ...(traits.isQuery ? ofQueries : []),
    ...(traits.isDraft ? ofDrafts : []),
    ...(traits.isTest ? ofTests : []),
    ...ownErrors,
  ];
  const examplesOf = (isOf: (status: number) => boolean): Examples =>
    Object.fromEntries(
      errors
        .filter(({ statusCode }) => isOf(statusCode))
        .sort((one, other) => one.statusCode - other.statusCode)
        .map((error) => [`${error.statusCode}_${error.code}`, error.body()]),
    );
  return {
    '4XX': examplesOf((status) => status < 500),
    '5XX': examplesOf((status) => status >= 500),
  };
}
