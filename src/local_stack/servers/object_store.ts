import { mkdirSync } from 'node:fs';
import type { Program } from '../children.ts';
import type { DataFolder } from '../data_folder.ts';
import type { Secrets } from '../secrets.ts';
import type { BuildableServer } from './built_server.ts';

/** An S3 server that keeps objects as files. */
export const objectStoreServer: BuildableServer = {
  name: 'versitygw',
  title: 'the S3 server versitygw',
  module: 'github.com/versity/versitygw/cmd/versitygw',
  version: 'v1.8.0',
  minutes: 3,
  variable: 'S3_ENDPOINT',
};

/** The region that clients name to the S3 server. */
export const objectStoreRegion = 'us-east-1';
const healthPath = '/-/health';

/**
 * How to run the S3 server on the loopback address.
 * @param attributes where it keeps what it knows of an object: in the file system's extended attributes, or in files
 *   beside, for file systems that have none.
 */
export function objectStoreProgram(
  command: string,
  folder: DataFolder,
  port: number,
  secrets: Pick<Secrets, 's3AccessKeyId' | 's3SecretAccessKey'>,
  attributes: 'extended' | 'files',
): Program {
  const objects = folder.inside('s3');
  const besides = folder.inside('s3-attributes');
  for (const path of attributes === 'extended' ? [objects] : [objects, besides])
    mkdirSync(path, { recursive: true });
  return {
    name: 's3',
    command,
    args: [
      ...['--port', `127.0.0.1:${String(port)}`, '--region', objectStoreRegion, '--health', healthPath],
      ...['--quiet', '--keep-alive', 'posix'],
      ...(attributes === 'files' ? ['--sidecar', besides] : []),
      objects,
    ],
    env: {
      ...process.env,
      ROOT_ACCESS_KEY_ID: secrets.s3AccessKeyId,
      ROOT_SECRET_ACCESS_KEY: secrets.s3SecretAccessKey,
    },
    stopSignal: 'SIGTERM',
  };
}

/** Whether the S3 server answers. */
export async function objectStoreAnswers(endpoint: string): Promise<boolean> {
  const answer = await fetch(endpoint + healthPath, { signal: AbortSignal.timeout(2_000) });
  return answer.ok;
}
