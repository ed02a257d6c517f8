import type { QueryConnection, ReadColumns, RowReceiver } from '../query_connection.ts';
import type { StatementRequest, ThreadTask, ToThread } from './thread_messages.ts';

/** A statement failed in the process that owns the connection, which has the error. */
export class StatementFailed extends Error {
  override readonly name = 'StatementFailed';
  readonly statementId: number;

  constructor(statementId: number) {
    super('A statement of the query failed.');
    this.statementId = statementId;
  }
}

/** A connection in another thread, and what receives its messages. */
export interface RemoteConnection extends QueryConnection {
  receive(message: Exclude<ToThread, { type: ThreadTask['type'] }>): void;
}

interface PendingStatement {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly receiver: RowReceiver | null;
}

/** Runs statements over the connection of the process: `send` asks it to run one. */
export function createRemoteConnection(send: (request: StatementRequest) => void): RemoteConnection {
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
