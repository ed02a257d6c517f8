/** Answers that would be asked for again without an end, or read for minutes. Requests are counted, and the CPU time of threads. */
import type { ServerResponse } from 'node:http';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import { bucketAt, openBucket, s3Settings } from './bucket_requests.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type FakeServer, type ReceivedRequest, startFakeServer } from './fake_server.ts';
import { openBucketReader } from '../../src/destination/bucket_reader.ts';

let server: FakeServer;
afterEach(() => server.close());

const { signal } = new AbortController();

/** Opens the destination of an export to a server. */
async function openAt(respond: (request: ReceivedRequest, response: ServerResponse) => void) {
  server = await startFakeServer(respond);
  const config = { file_format: 'Parquet', table_format: 'delta', prefix: 'table/{year}' };
  return openBucket(bucketAt(server.endpoint), config);
}

const objectBytes = 200_000;

describe('an object', () => {
  it.each<[string, (response: ServerResponse) => void]>([
    [
      'a byte and breaks off',
      (response) => {
        response.write('x', () => response.destroy());
      },
    ],
    ['nothing and breaks off', (response) => void response.destroy()],
  ])('of which the store sends %s is asked for a few times', async (_, send) => {
    const destination = await openAt((request, response) => {
      const [, from = '0'] = /bytes=(\d+)-/.exec(request.headers.range ?? '') ?? [];
      response.writeHead(request.headers.range === undefined ? 200 : 206, {
        etag: '"one"',
        'content-length': objectBytes - Number(from),
        'content-range': `bytes ${from}-${objectBytes - 1}/${objectBytes}`,
      });
      response.flushHeaders();
      send(response);
    });
    const read = async (): Promise<void> => {
      const object = await destination.openObject('key', signal);
      for await (const chunk of object?.chunks ?? []) expect(chunk.length).toBeGreaterThan(0);
    };
    await expect(read()).rejects.toMatchObject({ transient: true });
    expect(server.received.length).toBeLessThan(20);
  });

  it('whose rest is always empty is asked for a few times', async () => {
    const destination = await openAt((request, response) => {
      if (request.headers.range === undefined)
        response
          .writeHead(200, { etag: '"one"', 'content-length': objectBytes })
          .write('x', () => response.destroy());
      else {
        const [, from] = /bytes=(\d+)-/.exec(request.headers.range) ?? [];
        response
          .writeHead(206, { etag: '"one"', 'content-length': 0, 'content-range': `bytes ${from}-1/2` })
          .end();
      }
    });
    const read = async (): Promise<void> => {
      const object = await destination.openObject('key', signal);
      for await (const chunk of object?.chunks ?? []) expect(chunk.length).toBeGreaterThan(0);
    };
    await expect(read()).rejects.toMatchObject({ type: 'UnexpectedResponse', transient: true });
    expect(server.received.length).toBeLessThan(20);
  });
});

it('a list of empty pages ends after a few hundred of them', async () => {
  let pages = 0;
  const destination = await openAt((_, response) => {
    pages += 1;
    response.end(
      `<ListBucketResult><Name>bucket</Name><IsTruncated>true</IsTruncated><NextContinuationToken>${pages}</NextContinuationToken></ListBucketResult>`,
    );
  });
  const folder = destination.folder('events');
  await expect(folder.list('_delta_log/', '', signal)).rejects.toMatchObject({ type: 'ListTooLong' });
  expect(pages).toBeLessThan(500);
});

it('a list of keys that are not below its prefix fails, and no key of it is opened', async () => {
  server = await startFakeServer((_, response) => {
    response.end(
      `<ListBucketResult><Name>bucket</Name><Contents><Key>a/_manifests/1.json</Key></Contents><Contents><Key>b/_manifests/1.json</Key></Contents></ListBucketResult>`,
    );
  });
  const config = parseS3Config(
    {
      bucket_name: 'bucket',
      region: 'auto',
      prefix: 'a',
      endpoint_url: server.endpoint,
      aws_access_key_id: 'id',
      aws_secret_access_key: 'secret',
    },
    s3Settings(),
  );
  const reader = openBucketReader(config, { settings: s3Settings(), onError: () => undefined });
  const listed: string[] = [];
  const list = async (): Promise<void> => {
    for await (const key of reader.listKeys('a/_manifests/', signal)) listed.push(key);
  };
  await expect(list()).rejects.toMatchObject({
    type: 'UnexpectedResponse',
    message: expect.stringContaining('The S3 server lists b/_manifests/1.json below a/_manifests/'),
  });
  expect(listed).toEqual([]);
  reader.close();
});

it('an answer that follows interim answers without an end is not waited for', async () => {
  let sent = 0;
  const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(100));
  const destination = await openAt((_, response) => {
    const { socket } = response;
    if (!socket) return;
    const next = (): void => {
      if (socket.destroyed) return;
      sent += hints.length;
      if (socket.write(hints)) setImmediate(next);
      else socket.once('drain', next);
    };
    socket.on('error', () => undefined);
    next();
  });
  await expect(destination.openObject('key', signal)).rejects.toMatchObject({ type: 'S3Unreachable' });
  // What the buffers of two connections hold.
  expect(sent).toBeLessThan(40_000_000);
});

/** CPU time, which a busy machine does not use up: far above what a thread takes, and far below what quadratic work would. */
const maxCpuSeconds = 20;

it.each<[string, string]>([
  ['tags that never end', '<ETag '],
  ['tags with a prefix that never end', '<a:ETag '],
  ['names without tags', 'ETag:'],
])('an answer of 2 MB of %s is read in linear time', async (_, part) => {
  const begin = '<CompleteMultipartUploadResult>';
  // As many tags as an answer may have, as far apart as its bytes allow.
  const body = part.startsWith('<') ? `${part}${' '.repeat(34)}`.repeat(49_000) : part.repeat(400_000);
  server = await startFakeServer((_request, response) =>
    response.end(`${begin}${body}${begin.replace('<', '</')}`),
  );
  const before = process.cpuUsage();
  const thread = new Worker(new URL('answer_thread.ts', import.meta.url), {
    workerData: { endpoint: server.endpoint },
  });
  let outcome: unknown;
  thread.once('error', (error) => (outcome = error));
  thread.once('message', (message: unknown) => (outcome = message));
  const isOverBudget = (): boolean => {
    // Of this process: beside the thread it only waits.
    const { user, system } = process.cpuUsage(before);
    return user + system > maxCpuSeconds * 1_000_000;
  };
  try {
    const read = () => outcome ?? (isOverBudget() && 'still reading');
    expect(await waitFor(read, 'the thread has read the answer')).toBe('UnexpectedResponse');
  } finally {
    await thread.terminate();
  }
});
