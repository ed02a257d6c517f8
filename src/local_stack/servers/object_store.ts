import { mkdirSync } from 'node:fs';
import type { ProgramSpec } from '../child_processes.ts';
import type { DataFolder } from '../data_folder.ts';
import type { Secrets } from '../secrets.ts';
import type { BuildableServer } from './built_server.ts';

/** An S3 server that stores objects as files. */
export const objectStoreServer: BuildableServer = {
  name: 'versitygw',
  title: 'the S3 server versitygw',
  module: 'github.com/versity/versitygw/cmd/versitygw',
  version: 'v1.8.0',
  buildMinutes: 3,
  addressVariable: 'S3_ENDPOINT',
};

/** Region of the S3 server. */
export const objectStoreRegion = 'us-east-1';
const healthPath = '/-/health';

/**
 * How to run the S3 server on the loopback address.
 * @param attributes Where it stores the metadata of objects: in extended attributes, or in separate files if the file
 *   system has none.
 */
export function objectStoreProgram(
  command: string,
  folder: DataFolder,
  port: number,
  secrets: Pick<Secrets, 's3AccessKeyId' | 's3SecretAccessKey'>,
  attributes: 'extended' | 'files',
): ProgramSpec {
  const objects = folder.inside('s3');
  const attributesFolder = folder.inside('s3-attributes');
  for (const path of attributes === 'extended' ? [objects] : [objects, attributesFolder])
    mkdirSync(path, { recursive: true });
  return {
    name: 's3',
    command,
    args: [
      ...['--port', `127.0.0.1:${String(port)}`, '--region', objectStoreRegion, '--health', healthPath],
      ...['--quiet', '--keep-alive', 'posix'],
      ...(attributes === 'files' ? ['--sidecar', attributesFolder] : []),
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

/** Whether the S3 server is ready. */
export async function isObjectStoreReady(endpoint: string): Promise<boolean> {
  const response = await fetch(endpoint + healthPath, { signal: AbortSignal.timeout(2_000) });
  return response.ok;
}
