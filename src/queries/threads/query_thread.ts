import { parentPort, workerData } from 'node:worker_threads';
import type { RelationSettings } from '../../source/relations.ts';
import { builtInQueryKinds } from '../built_in_kinds.ts';
import { checkQuery, computeOutput, parseForm } from '../query_executor.ts';
import type { QueryConnection, ReadColumns, RowReceiver } from '../query_kind.ts';
import {
  type FromThread,
  type StatementRequest,
  type ThreadTask,
  type ToThread,
  transferError,
} from './thread_messages.ts';

/** A statement failed in the process that owns the connection, which has the error. */
class StatementFailed extends Error {
  override readonly name = 'StatementFailed';
  readonly statementId: number;

  constructor(statementId: number) {
    super('A statement of the query failed.');
    this.statementId = statementId;
  }
}

/** A connection in another thread, and what receives its messages. */
interface RemoteConnection extends QueryConnection {
  receive(message: Exclude<ToThread, { type: ThreadTask['type'] }>): void;
}

interface PendingStatement {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly receiver: RowReceiver | null;
}

/** Runs statements over the connection of the process: `send` asks it to run one. */
function createRemoteConnection(send: (request: StatementRequest) => void): RemoteConnection {
  const pending = new Map<number, PendingStatement>();
  let lastId = 0;

  const request = <Result>(
    statement: Omit<StatementRequest, 'id'>,
    receiver: RowReceiver | null,
  ): Promise<Result> =>
    new Promise((resolve, reject) => {
      lastId += 1;
      pending.set(lastId, { resolve: resolve as (result: unknown) => void, reject, receiver });
      send({ ...statement, id: lastId });
    });

  return {
    query: async (text, values) => ({
      rows: await request<readonly unknown[]>({ text, values, limits: null }, null),
    }),
    readRows: (statement, receiver) => {
      const { maxRows, maxBytes } = receiver;
      return request<ReadColumns>({ ...statement, limits: { maxRows, maxBytes } }, receiver);
    },
    receive(message) {
      const statement = pending.get(message.id);
      if (!statement) return;
      if (message.type === 'rows') {
        statement.receiver?.receive(message.rows, message.bytes);
        return;
      }
      pending.delete(message.id);
      if (message.type === 'statement_failed') statement.reject(new StatementFailed(message.id));
      else statement.resolve(message.type === 'columns' ? message.columns : message.rows);
    },
  };
}

/**
 * The program of a thread that computes queries, one at a time. Its statements run in the process, which owns the
 * connection, so that the process can cancel them after it has ended the thread. Node runs this file from source, even
 * where the rest of the process was transpiled (Jest).
 */
const kinds = builtInQueryKinds(workerData as RelationSettings);
const send = (message: FromThread, transferred: readonly ArrayBuffer[] = []): void =>
  parentPort?.postMessage(message, transferred);
const connection = createRemoteConnection((request) => send({ type: 'statement', request }));

async function perform(given: ThreadTask): Promise<void> {
  try {
    if (given.type === 'parse') send({ type: 'parsed', form: parseForm(kinds, given.task) });
    else if (given.type === 'check') {
      checkQuery(given.task);
      send({ type: 'checked' });
    } else {
      // The process reports the progress, as it reads the rows.
      const output = await computeOutput(kinds, given.task, { connection, progress: () => undefined });
      send({ type: 'computed', output }, [output.json.buffer as ArrayBuffer]);
    }
  } catch (error) {
    if (error instanceof StatementFailed) send({ type: 'failed_statement', id: error.statementId });
    else send({ type: 'failed', error: transferError(error) });
  }
}

parentPort?.on('message', (message: ToThread) => {
  if ('task' in message) void perform(message);
  else connection.receive(message);
});
