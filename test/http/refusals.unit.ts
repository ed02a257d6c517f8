import { describe, expect, it } from '@jest/globals';
import fastify from 'fastify';
import { Registry } from 'prom-client';
import type { Caller } from '../../src/http/plugins/authentication.ts';
import { createRefusals } from '../../src/http/plugins/refusals.ts';
import type { Logger } from '../../src/telemetry/logger.ts';

/** An application whose routes answer with the status in their path, to a caller with the key `key`. */
function openRefusing() {
  const metrics = new Registry();
  const warnings: unknown[] = [];
  const logger = { warn: (fields: unknown) => warnings.push(fields) } as unknown as Logger;
  const refusals = createRefusals({ logger, metrics });
  const app = fastify({ trustProxy: true });
  app.decorateRequest('caller', null);
  app.addHook('onResponse', (request, { statusCode }, done) => {
    refusals.recordResponse(request, statusCode);
    done();
  });
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.headers.authorization !== undefined) request.caller = { key_id: 'key' } as Caller;
    done();
  });
  app.get<{ Params: { status: string } }>('/:status', (request, reply) => {
    if (request.params.status === '404') refusals.recordOtherProject(request);
    return reply.code(Number(request.params.status)).send();
  });
  return { app, refusals, metrics, warnings };
}

const addresses = ['203.0.113.1', '203.0.113.2'];
const minute = () => Math.floor(Date.now() / 60_000);

describe('a refused request', () => {
  it('is counted by its reason, and warned of once per address, key, route and minute', async () => {
    const { app, refusals, metrics, warnings } = openRefusing();
    const begun = minute();
    for (let count = 0; count < 10; count += 1)
      for (const address of addresses) {
        const headers = { 'x-forwarded-for': address, authorization: 'Bearer key' };
        for (const url of ['/200', '/403', '/404', '/429', '/500']) await app.inject({ url, headers });
        refusals.recordFailedAuthentication('missing', address);
      }
    await app.close();
    const text = await metrics.metrics();
    const reasons = ['forbidden', 'other_project', 'throttled', 'missing'];
    for (const reason of reasons)
      expect(text).toContain(`exportd_http_refused_requests_total{reason="${reason}"} 20`);
    const kinds = reasons.length * addresses.length;
    expect(warnings.length).toBeLessThanOrEqual(kinds * (minute() - begun + 1));
    const [address = ''] = addresses;
    const known = { address, key_id: 'key', route: 'GET /:status' };
    expect(warnings).toEqual(
      expect.arrayContaining([
        ...['forbidden', 'other_project', 'throttled'].map((reason) => ({ reason, ...known })),
        { reason: 'missing', address },
      ]),
    );
  });

  it('of a limited address is counted as such alone', async () => {
    const { app, refusals, metrics } = openRefusing();
    refusals.recordFailedAuthentication('limited', '203.0.113.3');
    await app.inject({ url: '/429' });
    await app.close();
    const text = await metrics.metrics();
    expect(text).toContain('exportd_http_refused_requests_total{reason="limited"} 1');
    expect(text).not.toContain('throttled');
  });

  it('of thousands of addresses in a minute fills no log', () => {
    const { refusals, warnings } = openRefusing();
    const begun = minute();
    for (let host = 0; host < 3_000; host += 1)
      refusals.recordFailedAuthentication('rejected', `10.0.${host >> 8}.${host & 255}`);
    expect(warnings.length).toBeLessThanOrEqual(1_000 * (minute() - begun + 1));
  });
});
