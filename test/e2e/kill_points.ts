import { until } from '../setup/until.ts';
import { holdEvent } from './journal_hold.ts';
import { holdRequests } from './request_hold.ts';
import type { S3OperationName } from './s3_operation.ts';
import type { ProxiedRequest, S3Proxy } from './s3_proxy.ts';
import type { Stack } from './stack.ts';

/** A place in the course of a run at which it stands still until it is let go. */
export interface Held {
  readonly reached: () => Promise<void>;
  /** How many requests stand there. */
  readonly requests: () => number;
  /** Ends what is held, when the worker is dead: nothing of it gets any further. */
  readonly cut: () => Promise<void>;
}

/** Makes a run stand still somewhere. */
export type Hold = (
  at: { readonly proxy: S3Proxy; readonly stack: Stack },
  run: { readonly id: string; readonly prefix: string },
) => Promise<Held>;

/** Files of the second generation, not of the first. */
const isNew = ({ key }: ProxiedRequest, prefix: string): boolean =>
  key.startsWith(`${prefix}/`) && (key.includes('-g2.') || key.includes('/_manifests/'));

/** At a request of the run's second generation, before it, in it, or after its answer. */
const atRequest =
  (
    when: 'before' | 'passing' | 'answered',
    operation: S3OperationName,
    more: (request: ProxiedRequest) => boolean = () => true,
  ): Hold =>
  ({ proxy }, { prefix }) => {
    const hold = holdRequests(proxy, `${when} ${operation} below ${prefix}`, {
      when,
      matches: (request) => request.operation === operation && isNew(request, prefix) && more(request),
    });
    const cut = (): Promise<void> => {
      hold.release('broken');
      return Promise.resolve();
    };
    return Promise.resolve({ reached: hold.reached, requests: () => hold.held.length, cut });
  };

/** At a request that is on its way already: it arrives when the next attempt makes the same one, just before that. */
const arrivingLate =
  (operation: S3OperationName): Hold =>
  ({ proxy }, { prefix }) => {
    const came: ProxiedRequest[] = [];
    const { promise: repeated, resolve: repeat } = Promise.withResolvers<undefined>();
    proxy.intervene({
      before: async (request) => {
        if (request.operation !== operation || !isNew(request, prefix)) return undefined;
        came.push(request);
        if (came.length === 1) return repeated;
        repeat(undefined);
        await until(() => came[0]?.ended === true, `the late ${operation} below ${prefix} has arrived`);
        return undefined;
      },
    });
    return Promise.resolve({
      reached: async () => {
        await until(() => came.length > 0, `${operation} below ${prefix} is on its way`);
      },
      requests: () => came.length,
      cut: () => Promise.resolve(),
    });
  };

/** At an event that the run is about to append to the journal. */
const atEvent =
  (type: string, data: object = {}): Hold =>
  async ({ stack }, { id }) => {
    const { reached, release } = await holdEvent(stack, { run_id: id, type, data });
    return { reached, requests: () => 0, cut: release };
  };

/** Where a worker may be killed, in the order in which a run gets there. */
export const killPoints = {
  'before the upload is created': atRequest('before', 'CreateMultipartUpload'),
  'after the upload is created, before the journal knows it': atRequest('answered', 'CreateMultipartUpload'),
  'in a part': atRequest(
    'passing',
    'UploadPart',
    ({ partNumber, received }) => partNumber === 2 && received > 1024 * 1024,
  ),
  'between parts': atEvent('RunPartPlanned', { part: { part_number: 2 } }),
  'after the last part': atRequest('before', 'CompleteMultipartUpload'),
  'after completion, before the file is recorded': atRequest('answered', 'CompleteMultipartUpload'),
  'before the publish claim': atEvent('RunPublishStarted'),
  'after the claim, before the manifest': atRequest('before', 'PutObject'),
  'after the manifest': atRequest('answered', 'PutObject'),
  'after the last part, while the file is completed': arrivingLate('CompleteMultipartUpload'),
  'while the manifest is put': arrivingLate('PutObject'),
  'before the status is recorded': atEvent('RunCompleted'),
} as const satisfies Record<string, Hold>;

export type KillPoint = keyof typeof killPoints;
