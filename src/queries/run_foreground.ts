import { setTimeout as wait } from 'node:timers/promises';
import { completeAnswer } from './complete_answer.ts';
import { orderOf, type PreparedQuery } from './prepared_query.ts';
import type { QueryDesk } from './query_desk.ts';
import { QueryIdInUse, QueryInterrupted, QueryInvalid, QueryNotBegun } from './query_errors.ts';
import { endingOf } from './query_ending.ts';
import { loadAnswer, storeResult, type QueryResult, type StoredAnswer } from './results.ts';
import { runQuery } from './run_query.ts';
import type { RunningQuery } from './running_queries.ts';
import { beginQuery, cancelledCode, cancelledMessage, endQuery, hasEnded, readStatus } from './statuses.ts';
import type { QueryStatus } from './statuses.ts';

type Answer = Record<string, unknown>;

/**
 * Runs a query while its caller waits, in the process that was asked: it needs neither Temporal nor a worker, and ends
 * with that process. With an id of the client it has a status and can be cancelled; a second request under the same id
 * waits for the answer of the first.
 * @throws QueryInvalid, QueryIdInUse, QueryInterrupted
 */
export async function runForeground(
  desk: QueryDesk,
  id: string | null,
  prepared: PreparedQuery,
): Promise<Answer> {
  if (id === null)
    return desk.running.run(null, async (query) => answered(await calculate(desk, prepared, query)));
  const { begun, status } = await beginQuery(desk.pool, { ...orderOf(prepared), id, query_async: false });
  if (begun) return runNamed(desk, status.execution_id, prepared);
  if (status.cache_key !== prepared.cache_key) throw new QueryIdInUse();
  return answerOfOther(desk, status);
}

/** The pool's message, both when it is full and when the server does not answer. */
const noConnection = /^timeout exceeded when trying to connect$/;

type Calculated = QueryResult & { readonly answer: StoredAnswer };

async function calculate(desk: QueryDesk, prepared: PreparedQuery, query: RunningQuery): Promise<Calculated> {
  const { project, cache_key } = prepared;
  const timeoutMs = desk.settings.EXPORTD_QUERY_TIMEOUT_MS;
  const { answer, json } = await runQuery(desk, { ...prepared, timeoutMs }, query).catch((error: unknown) => {
    throw Error.isError(error) && noConnection.test(error.message) ? new QueryNotBegun() : error;
  });
  return { ...(await storeResult(desk.pool, { team_id: project.team_id, cache_key, json })), answer };
}

const answered = (result: Calculated): Answer =>
  completeAnswer(result.answer, result, { is_cached: false, query_status: null });

async function runNamed(desk: QueryDesk, executionId: string, prepared: PreparedQuery): Promise<Answer> {
  const keptMs = desk.settings.EXPORTD_QUERY_STATUS_MS;
  try {
    return await desk.running.run(executionId, async (query) => {
      const result = await calculate(desk, prepared, query);
      await endQuery(desk.pool, executionId, { status: 'completed', result_id: result.id }, keptMs);
      return answered(result);
    });
  } catch (error) {
    const ending = endingOf(error);
    await endQuery(desk.pool, executionId, ending, keptMs);
    if (ending.status === 'cancelled') throw new QueryInvalid(cancelledCode, cancelledMessage);
    throw error;
  }
}

/** Waits for the answer of a query that another request started under the same id. */
async function answerOfOther(desk: QueryDesk, status: QueryStatus): Promise<Answer> {
  if (!hasEnded(status)) {
    if (desk.running.interrupted()) throw new QueryInterrupted();
    await wait(desk.settings.EXPORTD_QUERY_POLL_MS);
    const next = await readStatus(desk.pool, status.team_id, status.id);
    if (next?.execution_id !== status.execution_id) throw new QueryInvalid(cancelledCode, cancelledMessage);
    return answerOfOther(desk, next);
  }
  const found =
    status.result_id === null ? undefined : await loadAnswer(desk.pool, status.team_id, status.result_id);
  if (found) return answered(found);
  if (status.error_code === 'query_lost' || status.error_code === 'query_interrupted')
    throw new QueryInterrupted();
  if (status.error_code === 'error') throw new Error('The query of the other request met a fault of ours.');
  throw new QueryInvalid(status.error_code ?? 'query_failed', status.error_message ?? 'The query failed.');
}
