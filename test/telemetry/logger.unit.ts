import { afterEach, describe, expect, it } from '@jest/globals';
import { createLogger, readableLines, withLogFields } from '../../src/telemetry/logger.ts';
import { inNewTrace } from '../../src/tracing/spans.ts';
import { recordSpans, type RecordedSpans } from '../tracing/recorded_spans.ts';

/** A logger and the lines that it has written. */
function createRecordingLogger() {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger(
    'test',
    { EXPORTD_LOG_LEVEL: 'info' },
    {
      write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
    },
  );
  return { logger, lines };
}

describe('a log line', () => {
  let recorded: RecordedSpans | undefined;
  afterEach(() => recorded?.stop());

  it('carries the ids of the work that it belongs to, and of its trace', async () => {
    recorded = recordSpans();
    const { logger, lines } = createRecordingLogger();
    await inNewTrace('run', {}, () =>
      withLogFields({ run_id: 'run', activity: 'exportInterval' }, async () => {
        await Promise.resolve();
        withLogFields({ backfill_id: 'backfill' }, () => logger.info({ activity: 'its own' }, 'inside'));
      }),
    );
    logger.info('outside');
    const { traceId, spanId } = recorded.spanOf('run').spanContext();
    expect(lines).toMatchObject([
      {
        msg: 'inside',
        run_id: 'run',
        backfill_id: 'backfill',
        activity: 'its own',
        trace_id: traceId,
        span_id: spanId,
      },
      { msg: 'outside' },
    ]);
    for (const field of ['run_id', 'trace_id']) expect(lines[1]).not.toHaveProperty(field);
  });

  it('never contains a secret field', () => {
    const { logger, lines } = createRecordingLogger();
    logger.info({ config: { destination: { aws_secret_access_key: 'a secret' } } }, 'config');
    expect(JSON.stringify(lines)).not.toContain('a secret');
  });

  it('is readable on a terminal', () => {
    let text = '';
    const output = { write: (line: string) => (text += line) !== '' };
    const logger = createLogger('worker', { EXPORTD_LOG_LEVEL: 'info' }, readableLines(output, false));
    logger.warn({ run_id: '1a2b' }, 'The bucket does not respond.');
    expect(text).toMatch(
      /^\[\d\d:\d\d:\d\d\.\d{3}\] WARN \(worker\): The bucket does not respond\.\n {4}run_id: "1a2b"\n$/,
    );
  });
});
