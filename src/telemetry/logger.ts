import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire } from 'node:module';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { prettyFactory } from 'pino-pretty';
import type { Settings } from '../config/settings.ts';
import { activeTraceIds } from '../tracing/spans.ts';

type Fields = Readonly<Record<string, unknown>>;

const current = new AsyncLocalStorage<Fields>();

/** Runs `work` so that all its log lines have these fields, in addition to those of the surrounding work. */
export const withLogFields = <Result>(fields: Fields, work: () => Result): Result =>
  current.run({ ...current.getStore(), ...fields }, work);

/** The fields of the current work. */
const currentLogFields = (): Fields | undefined => current.getStore();

export type { Logger };

/** Fields that could contain a secret, at any of the redacted depths of a logged object. */
const secretFields = ['aws_access_key_id', 'aws_secret_access_key', 'authorization', 'api_key', 'secrets'];

/** What is used of the package. */
interface PinoPretty {
  readonly prettyFactory: typeof prettyFactory;
}

const stderr = 2;

/**
 * Creates the logger of a process. It writes to stderr, since stdout is for the output of commands: JSON lines, or readable
 * ones on a terminal. A line carries the ids of the run or the other work that it belongs to, and those of its trace.
 */
export function createLogger(
  name: string,
  settings: Pick<Settings, 'EXPORTD_LOG_LEVEL'>,
  destination: DestinationStream = process.stderr.isTTY
    ? readableLines(process.stderr)
    : pino.destination(stderr),
): Logger {
  return pino(
    {
      name,
      level: settings.EXPORTD_LOG_LEVEL,
      mixin: () => ({ ...currentLogFields(), ...activeTraceIds() }),
      redact: {
        paths: secretFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`, `*.*.*.${field}`]),
        censor: '[secret]',
      },
    },
    destination,
  );
}

/** Formats lines for people: the time of day, the level and the message, then a line for each field. */
export function readableLines(
  output: Pick<NodeJS.WritableStream, 'write'>,
  colorize = process.stderr.isTTY,
): DestinationStream {
  // Loaded only here: a process in production never needs it.
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as PinoPretty;
  const format = prettyFactory({ colorize, translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname' });
  return { write: (line) => void output.write(format(line)) };
}
