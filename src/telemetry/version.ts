import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installedPath, isBuild, root } from '../config/installation.ts';

/** The version of exportd, as in package.json. */
export const version = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string })
  .version;

/** What a build is of. */
export interface BuildInformation {
  /** The commit of its sources; null if they were no clone. */
  readonly commit: string | null;
  /** The hash of its files; null of a clone. */
  readonly build: string | null;
  /** The build id of workers of these workflows, which Temporal shows; null of a clone, whose workers bundle them. */
  readonly workflow_build_id: string | null;
}

/** The file of a build with its information. */
export const buildInformationFile = 'build.json';

/** Reads what this build is of. A clone has none: its sources may have changed since its commit. */
export const readBuildInformation = (): BuildInformation =>
  isBuild
    ? (JSON.parse(readFileSync(installedPath(buildInformationFile), 'utf8')) as BuildInformation)
    : { commit: null, build: null, workflow_build_id: null };
