import { ApiError, invalid, notFound } from '../../api_error.ts';
import type { Examples } from './example.ts';

/** What decides which errors an operation can respond with. */
export interface OperationTraits {
  /** Whether its path has the id of a resource. */
  readonly hasPathId: boolean;
  readonly hasBody: boolean;
  /** Whether it submits a command, which the schedule of an export applies. */
  readonly isCommand: boolean;
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
  new ApiError(409, 'conflict', 'A run of this interval is active. Cancel it or wait for its end.'),
  new ApiError(
    409,
    'idempotency_key_reused',
    'This Idempotency-Key was used for another request. Use a new key.',
  ),
  new ApiError(
    429,
    'too_many_concurrent_backfills',
    'The project has too many unfinished backfills. Wait until one of them ends.',
  ),
  new ApiError(
    503,
    'temporal_unreachable',
    'Temporal cannot be reached. Nothing was changed. Retry in a few seconds.',
  ),
  new ApiError(503, 'withdrawn', 'The request was withdrawn before it was applied. Send it again.'),
  new ApiError(503, 'source_unreachable', 'The source cannot be reached. Retry in a few seconds.'),
  new ApiError(503, 'source_rejected', 'PostgreSQL rejected the statement on the source.'),
];

const ofQueries: readonly ApiError[] = [
  new ApiError(400, 'dialect_error', 'Unknown field "evnt". Did you mean "event"?', { attr: 'query__query' }),
  new ApiError(400, 'not_supported', 'Comparing with a previous period is not supported.', { attr: 'query' }),
  new ApiError(400, 'query_failed', 'The query failed: division by zero.'),
  new ApiError(
    400,
    'query_timeout',
    'The query took longer than 60 s. Restrict it or run it in the background.',
  ),
  new ApiError(409, 'conflict', 'A query with this id is running.', { attr: 'client_query_id' }),
  new ApiError(429, 'throttled', 'The project has sent 120 requests in the last hour. Retry in 240 seconds.'),
  new ApiError(503, 'temporal_unreachable', 'Temporal cannot be reached. Retry in a few seconds.'),
];

const ofDrafts: readonly ApiError[] = [
  new ApiError(400, 'too_long', 'The prompt must have at most 400 characters.', { attr: 'prompt' }),
  new ApiError(400, 'unclear', 'The prompt was not understood. Name an event and a time.', {
    attr: 'prompt',
  }),
];

const ofTests: readonly ApiError[] = [
  new ApiError(
    503,
    'not_tested',
    'No worker has tested the destination in time. Check that the workers run. Retry later.',
  ),
  new ApiError(503, 'temporal_unreachable', 'Temporal cannot be reached. Nothing was tested. Retry later.'),
];

/** Every error that the API responds with, so that none lacks an example. */
export const allErrors: readonly ApiError[] = [
  ...always,
  ...ofPathIds,
  ...ofBodies,
  ...ofCommands,
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
