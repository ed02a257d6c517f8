import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { CliError } from '../../src/cli/cli_error.ts';
import { newDestinationOf } from '../../src/cli/commands/destinations.ts';
import type { BatchExport } from '../../src/client/client.ts';
import { formatDuration, lagLines, runTable, statusRows } from '../../src/cli/export_tables.ts';
import { anExport, aRun } from './api_objects.ts';
import { confirm, stdoutFlushed } from '../../src/cli/output.ts';

it('shows no rows of a run that has published none', () => {
  const [, failed, running, completed] = runTable([
    aRun({ status: 'Failed', manifest_key: null }),
    aRun({ status: 'Running', manifest_key: null }),
    aRun({ status: 'Completed' }),
  ]);
  expect(failed).not.toContain('295');
  for (const line of [running, completed]) expect(line).toContain('295');
});

describe('a destination of flags', () => {
  const keys = { AWS_ACCESS_KEY_ID: 'AKIA1', AWS_SECRET_ACCESS_KEY: 'secret' };
  const bucket = { bucket: 'my-bucket', region: 'eu-central-1' };

  it('has the keys of the environment and the region of AWS', async () => {
    const options = {
      bucket: 'my-bucket',
      prefix: 'clicks',
      format: 'Parquet',
      compression: 'zstd',
      compressionLevel: 3,
      bloomFilters: true,
      tableFormat: 'delta',
      endpointUrl: 'http://127.0.0.1:9000',
    };
    expect(await newDestinationOf(options, {}, { ...keys, AWS_REGION: 'eu-west-1' })).toEqual({
      type: 'S3',
      config: {
        bucket_name: 'my-bucket',
        region: 'eu-west-1',
        prefix: 'clicks',
        file_format: 'Parquet',
        compression: 'zstd',
        compression_level: 3,
        bloom_filters: true,
        table_format: 'delta',
        endpoint_url: 'http://127.0.0.1:9000',
        aws_access_key_id: 'AKIA1',
        aws_secret_access_key: 'secret',
      },
    });
  });

  it.each([
    ['a role', { roleArn: 'arn:aws:iam::123456789012:role/exports' }],
    ['the credentials of the machine', { machineCredentials: true }],
  ])('with %s sends no keys, even if the environment has them', async (_, more) => {
    const { config } = await newDestinationOf({ ...bucket, ...more }, {}, keys);
    expect(config).not.toHaveProperty('aws_access_key_id');
    expect(config).not.toHaveProperty('aws_secret_access_key');
  });

  it('is added to the fields of JSON, whose keys are used', async () => {
    const given = { type: 'S3', config: { prefix: 'a', max_file_size_mb: 5, aws_access_key_id: 'AKIA2' } };
    expect(await newDestinationOf({ ...bucket, prefix: 'b', compression: 'none' }, given, {})).toEqual({
      type: 'S3',
      config: {
        ...given.config,
        bucket_name: 'my-bucket',
        region: 'eu-central-1',
        prefix: 'b',
        compression: null,
      },
    });
  });

  it('without flags is the JSON', async () => {
    const given = { type: 'S3', config: { bucket_name: 'b' } };
    expect(await newDestinationOf({}, given, {})).toEqual(given);
  });

  // Tests have no terminal.
  it.each([
    ['keys', bucket, {}, /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/],
    ['a region', { bucket: 'my-bucket' }, keys, /--region or set AWS_REGION/],
    ['keys that last', bucket, { ...keys, AWS_SESSION_TOKEN: 'token' }, /AWS_SESSION_TOKEN/],
  ])('needs %s', async (_, options, environment, message) => {
    await expect(newDestinationOf(options, {}, environment)).rejects.toThrow(message);
  });
});

describe('exportd status', () => {
  const { condition, lag } = anExport();

  describe('the status of exports', () => {
    it('lists first what needs attention', () => {
      const rows = statusRows([
        anExport({ name: 'fine' }),
        anExport({
          name: 'behind',
          lag: lag && { ...lag, intervals: 3, seconds: 10_800 },
          condition: { ...condition, severity: 'warning', cause: 'behind', summary: 'It is late.' },
        }),
        anExport({
          name: 'held',
          condition: { ...condition, severity: 'error', cause: 'held', summary: 'It is held.' },
        }),
      ]);
      expect(
        rows.map(([severity, cause, , name, , , behind, , detail]) => [
          severity,
          cause,
          name,
          behind,
          detail,
        ]),
      ).toEqual([
        ['error', 'held', 'held', 'none', 'It is held.'],
        ['warning', 'behind', 'behind', '3 h', 'It is late.'],
        ['ok', 'ok', 'fine', 'none', null],
      ]);
    });

    it('has one line for an outage of a hundred exports, and their own for others', () => {
      const out = (id: string, summary: string): BatchExport['condition'] => ({
        ...condition,
        severity: 'error',
        cause: 'destination_unavailable',
        summary: `${summary} 2 intervals wait.`,
        affected: { intervals: 2, ranges: [] },
        incident: { id, subject: 'the bucket', summary },
      });
      const rows = statusRows([
        anExport({ name: 'fine' }),
        ...Array.from({ length: 100 }, (_, index) =>
          anExport({ name: `out ${index}`, condition: out('one', 'The bucket is gone.') }),
        ),
        anExport({ name: 'alone', condition: out('two', 'Another bucket is gone.') }),
      ]);
      expect(
        rows.map(([severity, cause, , name, , , , , detail]) => [severity, cause, name, detail]),
      ).toEqual([
        [
          'error',
          'destination_unavailable',
          '100 exports',
          'The bucket is gone. 100 exports, 200 intervals wait.',
        ],
        ['error', 'destination_unavailable', 'alone', 'Another bucket is gone. 2 intervals wait.'],
        ['ok', 'ok', 'fine', null],
      ]);
    });
  });

  describe('a duration', () => {
    it.each([
      [0, '0 s'],
      [59.6, '1 min'],
      [3_600, '1 h'],
      [7_500, '2 h 5 min'],
      [86_400 + 59, '1 d'],
      [90_061, '1 d 1 h'],
    ])('of %s s is %s', (seconds, text) => {
      expect(formatDuration(seconds)).toBe(text);
    });
  });
});

describe('the lag of an export in the CLI', () => {
  const lag = {
    intervals: 1,
    seconds: 3600,
    last_completed_interval_end: '2026-11-01T10:00:00.000Z',
    gaps: [],
  };

  it('is one line without gaps', () => {
    expect(lagLines(lag)).toEqual([
      'Lag: 1 interval, 1 h. Newest completed interval: 2026-11-01T10:00:00.000Z.',
    ]);
  });

  it('lists the gaps and the runs to retry', () => {
    const gap = {
      data_interval_start: '2026-11-01T10:00:00.000Z',
      data_interval_end: '2026-11-01T11:00:00.000Z',
      run_id: 'the-run',
      status: 'TimedOut',
    } as const;
    const [, heading, , line] = lagLines({ ...lag, gaps: [gap] });
    expect(heading).toMatch(/retry/);
    expect(line).toMatch(/^2026-11-01T10:00:00.000Z +2026-11-01T11:00:00.000Z +Timedout +the-run$/);
  });

  it('says so when the server cannot read the schedule', () => {
    expect(lagLines(null)).toEqual([expect.stringMatching(/^Lag: unknown/)]);
  });
});

describe('the output of a command', () => {
  it('leaves no listener behind, since a process may run many commands', async () => {
    const before = process.stdout.listenerCount('error');
    await stdoutFlushed();
    await stdoutFlushed();
    expect(process.stdout.listenerCount('error')).toBe(before);
  });
});

describe('a question on a terminal', () => {
  /** Asks on a terminal whose user types this. */
  const ask = async (typed: string): Promise<{ readonly asked: string; readonly error: unknown }> => {
    const [keyboard, screen] = [new PassThrough(), new PassThrough()].map((stream) =>
      Object.assign(stream, { isTTY: true }),
    );
    const streams = { stdin: keyboard, stderr: screen };
    const before = Object.entries(Object.getOwnPropertyDescriptors(process)).filter(
      ([name]) => name in streams,
    );
    for (const [name, value] of Object.entries(streams))
      Object.defineProperty(process, name, { value, configurable: true });
    try {
      const answered = confirm('Delete 2 batch exports?', {}).then(
        () => undefined,
        (error: unknown) => error,
      );
      keyboard?.write(`${typed}\n`);
      const error = await answered;
      return { asked: String(screen?.read()), error };
    } finally {
      for (const [name, property] of before) Object.defineProperty(process, name, property);
    }
  };

  it.each(['y', 'YES', ' yes '])('goes on after %p', async (typed) => {
    const { asked, error } = await ask(typed);
    expect(asked).toContain('Delete 2 batch exports? [y/N]');
    expect(error).toBeUndefined();
  });

  it.each(['', 'n', 'yess', 'delete'])('changes nothing after %p', async (typed) => {
    expect((await ask(typed)).error).toEqual(new CliError('Nothing was changed.'));
  });

  it('is not asked with --yes, and without a terminal', async () => {
    await expect(confirm('Delete?', { yes: true })).resolves.toBeUndefined();
    await expect(confirm('Delete?', {})).resolves.toBeUndefined();
  });
});
