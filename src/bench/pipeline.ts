import { join } from 'node:path';
import { findOnPath } from '../local_stack/servers/executable.ts';
import type { ObjectStore } from '../local_stack/servers/start_servers.ts';
import { psqlEnvironment } from './export_statements.ts';
import type { Measurement } from './statistics.ts';
import { runTimed } from './timed_shell.ts';

const uploadProgram = join(import.meta.dirname, 'upload_program.ts');

/** Why the pipeline cannot run on this machine; undefined when it can. */
export function pipelineObstacle(): string | undefined {
  const missing = ['bash', 'psql', 'gzip'].filter((program) => findOnPath(program) === undefined);
  return missing.length === 0 ? undefined : `Not on PATH: ${missing.join(', ')}.`;
}

export type PipelineMeasurement = Measurement & {
  /** Size of the object. */
  readonly bytes: number;
};

/** Exports the rows with a shell pipeline: psql, gzip and an upload. */
export async function measurePipeline(
  target: { readonly databaseUrl: string; readonly objectStore: ObjectStore; readonly bucket: string },
  copyJson: string,
  signal: AbortSignal,
): Promise<PipelineMeasurement> {
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
  const { bytes } = JSON.parse(output) as { bytes: number };
  return { ...measured, bytes };
}
