import { join } from 'node:path';
import { findOnPath } from '../local_stack/servers/executable.ts';
import type { ObjectStore } from '../local_stack/servers/start_servers.ts';
import { psqlEnvironment } from './export_statements.ts';
import type { MeasuredProgram } from './statistics.ts';
import { runTimed } from './timed_shell.ts';

const uploadProgram = join(import.meta.dirname, 'upload_program.ts');

/** Why the pipeline cannot run on this machine; undefined when it can. */
export function pipelineObstacle(): string | undefined {
  const missing = ['bash', 'psql', 'gzip'].filter((program) => findOnPath(program) === undefined);
  return missing.length === 0 ? undefined : `Not on PATH: ${missing.join(', ')}.`;
}

/** What the upload program prints. Memory is its own, the largest of the pipeline. */
type Upload = Pick<MeasuredProgram, 'bytes' | 'peak_memory_bytes' | 's3_requests'>;

/** Exports the rows with a shell pipeline: psql, gzip and an upload. */
export async function measurePipeline(
  target: { readonly databaseUrl: string; readonly objectStore: ObjectStore; readonly bucket: string },
  copyJson: string,
  signal: AbortSignal,
): Promise<MeasuredProgram> {
  const { objectStore } = target;
  const environment = {
    ...psqlEnvironment(target.databaseUrl),
    COPY: copyJson,
    NODE: process.execPath,
    UPLOAD: uploadProgram,
    BUCKET: target.bucket,
    KEY: 'pipeline.jsonl.gz',
    S3_ENDPOINT: objectStore.endpoint,
    AWS_REGION: objectStore.region,
    AWS_ACCESS_KEY_ID: objectStore.accessKeyId,
    AWS_SECRET_ACCESS_KEY: objectStore.secretAccessKey,
  };
  const script = 'psql --no-psqlrc --quiet --command "$COPY" | gzip -6 | "$NODE" "$UPLOAD"';
  const { output, ...measured } = await runTimed(script, environment, signal);
  return { ...measured, ...(JSON.parse(output) as Upload) };
}
