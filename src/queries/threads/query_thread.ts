import { parentPort } from 'node:worker_threads';
import { builtInQueryKinds } from '../built_in_kinds.ts';
import { createNameCache } from '../name_notice.ts';
import { checkQuery } from '../dialect_query/check_query.ts';
import { computeOutput } from '../compute_output.ts';
import { parseForm } from '../parse_query.ts';
import type { InferTypes } from '../inferred_types.ts';
import type { RowReceiver, Warehouse } from '../warehouse.ts';
import {
  type FromThread,
  type ThreadTask,
  type ToThread,
  transferError,
  type WarehouseRequest,
} from './thread_messages.ts';

/** A request failed in the process that owns the warehouse, which has the error. */
class RequestFailed extends Error {
  override readonly name = 'RequestFailed';
  readonly requestId: number;

  constructor(requestId: number) {
    super('A request of the query failed.');
    this.requestId = requestId;
  }
}

/** A warehouse in another thread, and what receives its messages. */
interface RemoteWarehouse extends Warehouse {
  readonly inferTypes: InferTypes;
  receive(message: Exclude<ToThread, { type: ThreadTask['type'] }>): void;
}

interface PendingRequest {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly receive?: RowReceiver['receive'];
}

/** The warehouse of the process: `send` asks it. */
function createRemoteWarehouse(send: (request: WarehouseRequest) => void): RemoteWarehouse {
  const pending = new Map<number, PendingRequest>();
  let lastId = 0;

  const request = <Result>(
    asked: (id: number) => WarehouseRequest,
    receiver?: Pick<RowReceiver, 'receive'>,
  ): Promise<Result> =>
    new Promise((resolve, reject) => {
      lastId += 1;
      pending.set(lastId, { ...receiver, resolve: resolve as (result: unknown) => void, reject });
      send(asked(lastId));
    });

  return {
    schema: () => request((id) => ({ id, asks: 'schema' })),
    inferTypes: (properties) => request((id) => ({ id, asks: 'types', properties })),
    readRows: (statement, { maxRows, maxBytes, receive }) =>
      request((id) => ({ id, asks: 'rows', statement, limits: { maxRows, maxBytes } }), { receive }),
    receive(message) {
      const asked = pending.get(message.id);
      if (!asked) return;
      if (message.type === 'rows') {
        asked.receive?.(message.rows, message.bytes);
        return;
      }
      pending.delete(message.id);
      if (message.type === 'request_failed') asked.reject(new RequestFailed(message.id));
      else asked.resolve(resultOf(message));
    },
  };
}

function resultOf(message: Extract<ToThread, { type: 'columns' | 'schema' | 'types' }>): unknown {
  if (message.type === 'columns') return message.columns;
  return message.type === 'schema' ? message.schema : message.types;
}

/**
 * The program of a thread that computes queries, one at a time. Its statements run in the process, which owns the
 * connection of the warehouse, so that the process can cancel them after it has ended the thread. Node runs this file from source, even
 * where the rest of the process was transpiled (Jest).
 */
const send = (message: FromThread, transferred: readonly ArrayBuffer[] = []): void =>
  parentPort?.postMessage(message, transferred);
const warehouse = createRemoteWarehouse((request) => send({ type: 'request', request }));
const names = createNameCache();

async function perform(given: ThreadTask): Promise<void> {
  try {
    if (given.type === 'parse') send({ type: 'parsed', form: parseForm(builtInQueryKinds, given.task) });
    else if (given.type === 'check') {
      checkQuery(given.task);
      send({ type: 'checked' });
    } else {
      // The process reports the progress, as it reads the rows.
      const { inferTypes } = warehouse;
      const environment = { warehouse, inferTypes, progress: () => undefined };
      const output = await computeOutput(builtInQueryKinds, given.task, environment, names);
      send({ type: 'computed', output }, [output.json.buffer as ArrayBuffer]);
    }
  } catch (error) {
    if (error instanceof RequestFailed) send({ type: 'failed_request', id: error.requestId });
    else send({ type: 'failed', error: transferError(error) });
  }
}

parentPort?.on('message', (message: ToThread) => {
  if ('task' in message) void perform(message);
  else warehouse.receive(message);
});
