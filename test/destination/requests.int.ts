import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import type { DestinationError } from '../../src/destination/destination.ts';
import { createS3Requests } from '../../src/destination/requests.ts';
import { s3Settings } from './bucket_requests.ts';

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

/**
 * Sends a request to a server that is busy for `busyRequests` requests; returns the reported errors and the outcome.
 */
const requestFromBusyServer = (busyRequests: number, retryBudgetMs: number) =>
  requestFrom((requestCount, response) => {
    response.writeHead(requestCount > busyRequests ? 200 : 503).end(emptyList);
  }, retryBudgetMs);

/** Sends a request to a server whose responses depend on the number of requests. */
async function requestFrom(
  respond: (requestCount: number, response: ServerResponse) => void,
  retryBudgetMs: number,
) {
  let requestCount = 0;
  const listening = createServer((_, response) => {
    requestCount += 1;
    respond(requestCount, response);
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const settings = s3Settings({ EXPORTD_S3_RETRY_BUDGET: `${retryBudgetMs}ms` });
  const waits: DestinationError[] = [];
  const config = {
    bucket_name: 'bucket',
    region: 'us-east-1',
    prefix: '',
    endpoint_url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    aws_access_key_id: 'id',
    aws_secret_access_key: 'secret',
  };
  const requests = createS3Requests(s3Config(config), { settings, onError: (fault) => waits.push(fault) });
  const error = await requests
    .send('ListObjectsV2', new AbortController().signal, (client, call) =>
      client.send(new ListObjectsV2Command({ Bucket: 'bucket' }), call),
    )
    .then(
      () => 'responded',
      (fault: unknown) => fault,
    )
    .finally(() => requests.close());
  return { outcome: error, waits };
}

const emptyList = '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult></ListBucketResult>';

const s3Config = (config: object) => parseS3Config(config, s3Settings());

describe('requests of a machine whose clock is wrong', () => {
  it("fail at once with an operator's fault", async () => {
    const { outcome, waits } = await requestFrom((_, response) => {
      const body = '<Error><Code>RequestTimeTooSkewed</Code><Message>Too far.</Message></Error>';
      response.writeHead(403, { 'content-type': 'application/xml' }).end(body);
    }, 60_000);
    expect(outcome).toMatchObject({ type: 'RequestTimeTooSkewed', owner: 'operator', transient: false });
    expect(waits).toEqual([]);
  });
});

describe('requests during an outage', () => {
  it('are retried until the server is back, and reported', async () => {
    const { outcome: error, waits } = await requestFromBusyServer(5, 60_000);
    expect(error).toBe('responded');
    expect(waits.length).toBeGreaterThan(0);
  });

  it('fail with a transient error when the retry budget is exhausted', async () => {
    const { outcome: error } = await requestFromBusyServer(Number.POSITIVE_INFINITY, 30);
    expect(error).toMatchObject({ name: 'DestinationError', transient: true });
  });
});
