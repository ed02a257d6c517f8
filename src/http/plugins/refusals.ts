import { isIPv6 } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Counter, type Registry } from 'prom-client';
import type { Logger } from '../../telemetry/logger.ts';

/**
 * How authentication failed: no key was sent, an invalid one was answered with 401, or with 429 because its address has
 * failed too often.
 */
export type FailedAuthentication = 'missing' | 'rejected' | 'limited';

/**
 * Why a request was refused: how authentication failed, a right that the key lacks (403), a path of a project that it does not
 * cover (404), or a limit of its project (429).
 */
type RefusalReason = FailedAuthentication | 'forbidden' | 'other_project' | 'throttled';

/** Counts what was refused, and says it in the log. */
export interface Refusals {
  /** Records a request without a valid key. */
  recordFailedAuthentication(outcome: FailedAuthentication, address: string): void;
  /** Records a request whose path is of a project that its key does not cover. */
  recordOtherProject(request: FastifyRequest): void;
  /** Records a request that was answered, if it was refused. */
  recordResponse(request: FastifyRequest, status: number): void;
}

/** Above this, the refusals of a minute are only counted, so that an attacker with many addresses fills no log. */
const maxWarnings = 1_000;

/** Counts the refused requests of an application. */
export function addRefusals(
  app: FastifyInstance,
  dependencies: Parameters<typeof createRefusals>[0],
): Refusals {
  const refusals = createRefusals(dependencies);
  app.addHook('onResponse', (request, { statusCode }, done) => {
    refusals.recordResponse(request, statusCode);
    done();
  });
  return refusals;
}

/**
 * Creates the counter of refused requests. The first of an address, key, route and reason in a minute is a warning in the log:
 * those without a valid key have no key and, as they may name any path, no route.
 */
export function createRefusals({
  logger,
  metrics,
}: {
  readonly logger: Logger;
  readonly metrics: Registry;
}): Refusals {
  const refused = new Counter({
    name: 'exportd_http_refused_requests_total',
    help: 'Requests without a valid API key, without the right, of another project or beyond a limit.',
    labelNames: ['reason'],
    registers: [metrics],
  });
  const warned = new Set<string>();
  let currentMinute = 0;

  const record = (
    reason: RefusalReason,
    source: { readonly address: string; readonly key_id?: string | undefined; readonly route?: string },
  ): void => {
    refused.inc({ reason });
    const minute = Math.floor(Date.now() / 60_000);
    if (minute !== currentMinute) {
      currentMinute = minute;
      warned.clear();
    }
    const fields = { reason, ...source };
    const id = JSON.stringify(fields);
    if (warned.has(id) || warned.size >= maxWarnings) return;
    warned.add(id);
    logger.warn(fields, 'Refused a request. Equal ones of this minute are only counted.');
  };

  const recordRequest = (reason: RefusalReason, request: FastifyRequest): void => {
    record(reason, {
      address: clientOf(request.ip),
      key_id: request.caller?.key_id,
      route: `${request.method} ${request.routeOptions.url ?? ''}`,
    });
  };

  return {
    recordFailedAuthentication: (outcome, address) => record(outcome, { address }),
    recordOtherProject: (request) => recordRequest('other_project', request),
    recordResponse: (request, status) => {
      if (status === 403) recordRequest('forbidden', request);
      // Without a caller, the limit of invalid keys has recorded it.
      if (status === 429 && request.caller) recordRequest('throttled', request);
    },
  };
}

/** What stands for a client: its address, or the /64 of an IPv6 address, which one client has all of. */
export function clientOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [left = '', right] = (address.split('%', 1)[0] ?? '').split('::');
  const before = left === '' ? [] : left.split(':');
  const after = right === undefined || right === '' ? [] : right.split(':');
  const zeros =
    right === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => '0');
  const groups = [...before, ...zeros, ...after]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16));
  return `${groups.join(':')}::/64`;
}
