import { pino, type Logger } from 'pino';
import type { Settings } from '../config/settings.ts';

export type { Logger };

/** Fields that could contain a secret, at any of the redacted depths of a logged object. */
const secretFields = ['aws_access_key_id', 'aws_secret_access_key', 'authorization', 'api_key', 'secrets'];

/** Creates the logger of a process. It writes JSON lines to stderr; stdout is for the output of commands. */
export function createLogger(name: string, settings: Pick<Settings, 'EXPORTD_LOG_LEVEL'>): Logger {
  return pino(
    {
      name,
      level: settings.EXPORTD_LOG_LEVEL,
      redact: {
        paths: secretFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`, `*.*.*.${field}`]),
        censor: '[secret]',
      },
    },
    pino.destination(2),
  );
}
