import { waitFor } from '../setup/wait_for.ts';
import { blockEvent } from './journal_gate.ts';
import { blockRequests } from './request_gate.ts';
import type { S3OperationName } from './s3_operation.ts';
import type { ProxiedRequest, S3Proxy } from './s3_proxy.ts';
import type { Stack } from './stack.ts';

/** Blocks a run at a kill point. */
export interface KillPointGate {
  readonly reached: () => Promise<void>;
  /** The number of blocked requests. */
  readonly requests: () => number;
  /** Discards what is blocked, once the worker is dead. */
  readonly discard: () => Promise<void>;
}

/** Creates the gate of a kill point for a run. */
export type KillPointGateFactory = (
  at: { readonly proxy: S3Proxy; readonly stack: Stack },
  run: { readonly id: string; readonly prefix: string },
) => Promise<KillPointGate>;

/** Whether the request is about the second generation of a file, a manifest, or the log of a table. */
const isNew = ({ key }: ProxiedRequest, prefix: string): boolean =>
  key.startsWith(`${prefix}/`) &&
  (key.includes('-g2.') || key.includes('/_manifests/') || key.includes(tableLog));

/** In the keys of a table's versions. */
export const tableLog = '/_delta_log/';

/** Blocks a request of the run's second generation: before it, during its body, or before its response arrives. */
const atRequest =
  (
    when: 'before' | 'during' | 'after',
    operation: S3OperationName,
    extraCondition: (request: ProxiedRequest) => boolean = () => true,
  ): KillPointGateFactory =>
  ({ proxy }, { prefix }) => {
    const gate = blockRequests(proxy, `${when} ${operation} below ${prefix}`, {
      when,
      matches: (request) =>
        request.operation === operation && isNew(request, prefix) && extraCondition(request),
    });
    const discard = (): Promise<void> => {
      gate.open('broken');
      return Promise.resolve();
    };
    return Promise.resolve({ reached: gate.reached, requests: () => gate.waiting.length, discard });
  };

const hasBegun = ({ received }: ProxiedRequest): boolean => received > 1024 * 1024;

/** Delays a request in the network until just before the next attempt sends the same one. */
const arrivingLate =
  (operation: S3OperationName): KillPointGateFactory =>
  ({ proxy }, { prefix }) => {
    const arrived: ProxiedRequest[] = [];
    const { promise: retried, resolve: repeat } = Promise.withResolvers<undefined>();
    proxy.intercept({
      before: async (request) => {
        if (request.operation !== operation || !isNew(request, prefix)) return undefined;
        arrived.push(request);
        if (arrived.length === 1) return retried;
        repeat(undefined);
        await waitFor(() => arrived[0]?.ended === true, `the late ${operation} below ${prefix} has arrived`);
        return undefined;
      },
    });
    return Promise.resolve({
      reached: async () => {
        await waitFor(() => arrived.length > 0, `${operation} below ${prefix} was sent`);
      },
      requests: () => arrived.length,
      discard: () => Promise.resolve(),
    });
  };

/** Delays the PUT of a file in the network until just after the next attempt has found no object under its key. */
const arrivingMissed: KillPointGateFactory = ({ proxy }, { prefix }) => {
  const arrived: ProxiedRequest[] = [];
  const { promise: missed, resolve: release } = Promise.withResolvers<undefined>();
  proxy.intercept({
    before: (request) => {
      if (arrived.length > 0 || request.operation !== 'PutObject' || !isNew(request, prefix))
        return undefined;
      arrived.push(request);
      return missed;
    },
    after: async ({ operation, key, status }) => {
      if (operation !== 'HeadObject' || key !== arrived[0]?.key || status !== 404) return undefined;
      release(undefined);
      await waitFor(() => arrived[0]?.ended === true, `the late file below ${prefix} has arrived`);
      return undefined;
    },
  });
  return Promise.resolve({
    reached: async () => {
      await waitFor(() => arrived.length > 0, `a file below ${prefix} was sent`);
    },
    requests: () => arrived.length,
    discard: () => Promise.resolve(),
  });
};

/** Blocks the append of an event of the run. */
const atEvent =
  (type: string, data: object = {}): KillPointGateFactory =>
  async ({ stack }, { id }) => {
    const { reached, open } = await blockEvent(stack, { run_id: id, type, data });
    return { reached, requests: () => 0, discard: open };
  };

/** The points at which the worker is killed, in the order in which a run reaches them. */
export const killPoints = {
  'before the upload is created': atRequest('before', 'CreateMultipartUpload'),
  'after the upload is created, before it is recorded': atRequest('after', 'CreateMultipartUpload'),
  'in a part': atRequest('during', 'UploadPart', (request) => request.partNumber === 2 && hasBegun(request)),
  'between parts': atEvent('RunPartPlanned', { part: { part_number: 2 } }),
  'after the last part': atRequest('before', 'CompleteMultipartUpload'),
  'after completion, before the file is recorded': atRequest('after', 'CompleteMultipartUpload'),
  'before the publish claim': atEvent('RunPublishStarted'),
  'after the claim, before the manifest': atRequest('before', 'PutObject'),
  'after the manifest': atRequest('after', 'PutObject'),
  'after the last part, while the file is completed': arrivingLate('CompleteMultipartUpload'),
  'while the manifest is written': arrivingLate('PutObject'),
  'before the status is recorded': atEvent('RunCompleted'),
} as const satisfies Record<string, KillPointGateFactory>;

export type KillPoint = keyof typeof killPoints;

/**
 * The same for an interval whose file is one request. test/export/whole_files.int.ts and two_requests.int.ts crash at the
 * others.
 */
export const smallKillPoints = {
  'while the file is written': arrivingMissed,
} as const satisfies Record<string, KillPointGateFactory>;

export type SmallKillPoint = keyof typeof smallKillPoints;

const isCommit = ({ key }: ProxiedRequest): boolean => key.includes(tableLog);

/** The same for the file and the commit of a table. Its rows fill one part, or more when memory is short. */
export const tableKillPoints = {
  'in a part': atRequest('during', 'UploadPart', hasBegun),
  'before the commit': atRequest('before', 'PutObject', isCommit),
  'after the commit, before it is recorded': atRequest('after', 'PutObject', isCommit),
} as const satisfies Record<string, KillPointGateFactory>;

export type TableKillPoint = keyof typeof tableKillPoints;
