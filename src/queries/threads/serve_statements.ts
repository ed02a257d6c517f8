import type { RunEnvironment } from '../query_executor.ts';
import type { StatementRequest, ToThread } from './thread_messages.ts';

/** Runs the statements of a thread, and keeps their errors. */
export interface StatementServer {
  serve(request: StatementRequest): void;
  /** The error of a statement. */
  errorOf(id: number): unknown;
  /** Waits until no statement runs. */
  settled(): Promise<void>;
}

/** @param send sends to the thread; does nothing once it has ended */
export function createStatementServer(
  { connection, progress }: Pick<RunEnvironment, 'connection' | 'progress'>,
  send: (message: ToThread) => void,
): StatementServer {
  const errors = new Map<number, unknown>();
  let running: Promise<unknown> = Promise.resolve();

  async function run({ id, limits, ...statement }: StatementRequest): Promise<void> {
    if (limits === null) {
      const { rows } = await connection.query(statement.text, statement.values);
      send({ type: 'objects', id, rows });
      return;
    }
    let rowsRead = 0;
    let bytesRead = 0;
    const columns = await connection.readRows(statement, {
      ...limits,
      receive: (rows, bytes) => {
        rowsRead += rows.length;
        bytesRead += bytes;
        progress({ rows_read: rowsRead, bytes_read: bytesRead });
        send({ type: 'rows', id, rows, bytes });
      },
    });
    send({ type: 'columns', id, columns });
  }

  return {
    serve: (request) => {
      running = run(request).catch((error: unknown) => {
        errors.set(request.id, error);
        send({ type: 'statement_failed', id: request.id });
      });
    },
    errorOf: (id) => errors.get(id),
    settled: async () => {
      await running;
    },
  };
}
