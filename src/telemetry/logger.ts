import { pino, type Logger } from 'pino';
import type { Settings } from '../config/settings.ts';

export type { Logger };

/** Members that could hold a secret, wherever they stand in a logged object. */
const secretMembers = ['aws_access_key_id', 'aws_secret_access_key', 'authorization', 'api_key', 'secrets'];

/** A process's logger: JSON lines on standard error, so that standard output stays free for answers. */
export function createLogger(name: string, settings: Pick<Settings, 'EXPORTD_LOG_LEVEL'>): Logger {
  return pino(
    {
      name,
      level: settings.EXPORTD_LOG_LEVEL,
      redact: {
        paths: secretMembers.flatMap((member) => [member, `*.${member}`, `*.*.${member}`, `*.*.*.${member}`]),
        censor: '[secret]',
      },
    },
    pino.destination(2),
  );
}
