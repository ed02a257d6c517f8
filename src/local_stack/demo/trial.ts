import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Settings } from '../../config/settings.ts';
import { type DataFolder, LaunchError } from '../data_folder.ts';
import { updateQueryRole } from '../queries.ts';
import type { Report } from '../report.ts';
import type { ObjectStore } from '../servers/start_servers.ts';
import { createApiClient } from './api_client.ts';
import { demoBucket, demoProject, ensureBucket, exportDemo, prepareDemo } from './demo.ts';
import { withPool } from './demo_file.ts';
import { listProjects } from '../../http/accounts/projects.ts';

/** Servers of a trial that something else runs, such as Compose. */
interface Trial {
  readonly settings: Settings;
  /** URL of the HTTP API, as this process reaches it. */
  readonly baseUrl: string;
  /** URL of the console, as the user reaches it. */
  readonly consoleUrl: string;
  readonly objectStore: ObjectStore;
}

/** How long a server and a worker may take to start. */
const startTimeoutMs = 300_000;

/** Waits until the service can create exports. @throws LaunchError */
async function waitUntilServing(baseUrl: string): Promise<void> {
  const deadline = performance.now() + startTimeoutMs;
  while (performance.now() < deadline) {
    const response = await fetch(`${baseUrl}/readyz?for=act`).catch(() => undefined);
    if (response?.ok) return;
    await delay(500);
  }
  throw new LaunchError(
    `${baseUrl}/readyz?for=act did not respond 200 within ${String(startTimeoutMs / 1_000)} s.`,
  );
}

/** The demo's project, once it has an export. */
const findFilledProject = (databaseUrl: string): Promise<number | undefined> =>
  withPool(databaseUrl, async (pool) => {
    const project = (await listProjects(pool)).find(({ name }) => name === demoProject);
    const { rowCount } = await pool.query('select from exportd.batch_exports where team_id = $1 limit 1', [
      project?.id ?? null,
    ]);
    return rowCount ? project?.id : undefined;
  });

/**
 * Fills a trial as `npm start` does: a project with rows, a bucket and an hourly export, a backfill, and a key, which it prints.
 * Does nothing where the project has an export.
 * @throws LaunchError when the service does not start.
 */
export async function fillTrial(trial: Trial, report: Report): Promise<void> {
  const { settings, baseUrl, consoleUrl, objectStore } = trial;
  const databaseUrl = settings.DATABASE_URL;
  const filled = await findFilledProject(databaseUrl);
  if (filled !== undefined) {
    process.stdout.write(filledInstructions(consoleUrl, filled));
    return;
  }
  const path = mkdtempSync(join(tmpdir(), 'exportd-demo-'));
  const folder: DataFolder = { path, inside: (...names) => join(path, ...names) };
  try {
    await waitUntilServing(baseUrl);
    await ensureBucket(objectStore, demoBucket);
    const accounts = await prepareDemo(databaseUrl, folder, report, () =>
      updateQueryRole(databaseUrl, settings),
    );
    const client = createApiClient(baseUrl, accounts.projectId, accounts.apiKey);
    await exportDemo(client, folder, objectStore, report);
    report('Everything is ready');
    process.stdout.write(
      `\n  Console   ${consoleUrl}, sign in with the key\n  API key   ${accounts.apiKey}\n\n`,
    );
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

const filledInstructions = (consoleUrl: string, projectId: number): string => `
  Console   ${consoleUrl}, sign in with the key that the first start printed, or with another:
            docker compose exec server exportd key create --project ${String(projectId)} --preset owner

`;
