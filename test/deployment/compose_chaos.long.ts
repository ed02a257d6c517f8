import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Arbitrary, constantFrom, integer, record, sample } from 'fast-check';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type ComposeProject, openComposeProject } from './containers/compose_project.ts';

// Three workers through what happens to hosts, in the image as it is deployed.

const run = promisify(execFile);

const workers = 3;
/** The hours that each seed exports, in each format. */
const hours = 12;
const faultsPerSeed = 12;
const seeds = [1, 2, 3];
const formats = [
  { file_format: 'JSONLines', compression: 'gzip' },
  { file_format: 'CSV', compression: 'zstd' },
  { file_format: 'Parquet', compression: 'snappy' },
] as const;

/** What happens to one of the workers, and for how long. It is cut from a server in the network namespace of its container. */
interface Fault {
  readonly kind: 'kill' | 'freeze' | 's3' | 'postgres' | 'temporal';
  readonly worker: number;
  readonly seconds: number;
}

const faults: Arbitrary<Fault> = record({
  kind: constantFrom<Fault['kind'][]>('kill', 'freeze', 's3', 'postgres', 'temporal'),
  worker: integer({ min: 0, max: workers - 1 }),
  seconds: integer({ min: 1, max: 8 }),
});

describe('three workers of Compose', () => {
  let project: ComposeProject | undefined;
  beforeAll(async () => {
    project = await openComposeProject(1);
    await project.up('--scale', `worker=${workers}`);
  });
  afterAll(() => project?.close());

  const opened = (): ComposeProject => {
    if (!project) throw new Error('Compose did not start.');
    return project;
  };

  /** One line of an inspected container. */
  const inspect = async (id: string, format: string): Promise<string> =>
    (await opened().engine.podman('inspect', '--format', format, id)).trim();

  const addressesOf = async (service: string): Promise<string[]> => {
    const [id = ''] = await opened().containersOf(service);
    const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}';
    return (await inspect(id, format)).split(' ').filter(Boolean);
  };

  /** Does a fault to a worker, and undoes it. */
  async function suffer({ kind, worker, seconds }: Fault): Promise<void> {
    const ids = await opened().containersOf('worker');
    const id = ids[worker % ids.length] ?? '';
    const pid = await inspect(id, '{{.State.Pid}}');
    // Between its exit and its restart, a container has no process.
    if (pid === '0') return;
    if (kind === 'kill') {
      process.kill(Number(pid), 'SIGKILL');
      return;
    }
    if (kind === 'freeze') {
      await opened().engine.podman('pause', id);
      await delay(seconds * 1_000);
      await opened().engine.podman('unpause', id);
      return;
    }
    const route = (action: 'add' | 'del', address: string) =>
      run('nsenter', ['--target', pid, '--net', 'ip', 'route', action, 'blackhole', `${address}/32`]);
    const addresses = await addressesOf(kind);
    for (const address of addresses) await route('add', address);
    await delay(seconds * 1_000);
    for (const address of addresses) await route('del', address);
  }

  const withKey = (key: string, ...args: readonly string[]) =>
    opened().compose(
      'exec',
      '-T',
      '-e',
      `EXPORTD_API_KEY=${key}`,
      '-e',
      'EXPORTD_BASE_URL=http://127.0.0.1:8000',
      '-e',
      'AWS_ACCESS_KEY_ID=exportd',
      '-e',
      `AWS_SECRET_ACCESS_KEY=${opened().secrets.S3_SECRET_ACCESS_KEY}`,
      'server',
      'exportd',
      ...args,
    );

  it.each(seeds)('export every row once, whatever happens to them: seed %i', async (seed) => {
    const log = await waitFor(
      async () => {
        const text = await opened().compose('logs', '--no-color', 'demo');
        return text.includes('API key') ? text : undefined;
      },
      'the demo is ready',
      600_000,
    );
    const key = /API key +(exk_[\w-]{43})/.exec(log)?.[1] ?? '';
    const ids: string[] = [];
    for (const format of formats) {
      const created = await withKey(
        key,
        'export',
        'create',
        '--json',
        '--name',
        `Chaos ${seed} ${format.file_format}`,
        '--bucket',
        'exportd-demo',
        '--region',
        'us-east-1',
        '--endpoint-url',
        'http://s3:8333',
        '--prefix',
        `chaos-${seed}-${format.file_format}`,
        '--format',
        format.file_format,
        '--compression',
        format.compression,
      );
      const { id } = JSON.parse(created) as { id: string };
      ids.push(id);
      const range = ['--start-at', hourAgo(hours + 2).toISOString(), '--end-at', hourAgo(2).toISOString()];
      await withKey(key, 'export', 'backfill', id, ...range);
    }
    for (const fault of sample(faults, { seed, numRuns: faultsPerSeed })) await suffer(fault);
    for (const id of ids) {
      await waitFor(
        async () => {
          const listed = JSON.parse(await withKey(key, 'backfill', 'list', id, '--json')) as {
            results: readonly { status: string }[];
          };
          return listed.results.every(({ status }) => status === 'Completed');
        },
        `the backfill of ${id} is completed`,
        1_200_000,
      );
      expect(await opened().exportd('worker', 'verify', id, '--deep')).toContain(': no findings');
    }
  });
});
