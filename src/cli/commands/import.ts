import type { Command } from 'commander';
import { CliError } from '../cli_error.ts';
import { printer } from '../output.ts';

interface ImportOptions {
  readonly url?: string;
  readonly project?: string;
  readonly key?: string;
  readonly file?: string;
  readonly seam?: string;
  readonly json?: boolean;
}

/** How long the person has to apply the file before exportd takes over. */
const leadMs = 60 * 60_000;

/** `import posthog`: prints the batch exports of another product as a file for `apply`. */
export function addImportCommands(program: Command): void {
  const imports = program
    .command('import')
    .description('print the batch exports of another product as a file for "exportd apply"');

  imports
    .command('posthog')
    .description('read the batch exports of a project of PostHog, and change nothing there')
    .option('--url <url>', 'address of PostHog, such as https://eu.posthog.com')
    .option('--project <id>', 'id of the project in PostHog')
    .option('--key <key>', 'personal API key with the scope batch_export:read; by default POSTHOG_API_KEY')
    .option('--file <path>', 'what its API returned, instead of --url: one export or a list; - reads stdin')
    .option(
      '--seam <time>',
      'exportd takes over at the first boundary of an interval at or after this ISO 8601 time (default: in an hour)',
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe comments of the file say what does not come along, and how no row is lost or doubled at the seam.\n\nExample:\n  exportd import posthog --url https://eu.posthog.com --project 7 > exports.yaml',
    )
    .action(async (options: ImportOptions) => {
      const now = new Date();
      const from = seamTime(options.seam) ?? new Date(now.getTime() + leadMs);
      const [{ exports, origin }, { translateExports }, { importedFile }] = await Promise.all([
        readExports(options),
        import('../import/translate.ts'),
        import('../import/imported_file.ts'),
      ]);
      const translated = translateExports(exports, from);
      printer(options)({ exports: translated }, () => [
        importedFile(translated, { origin, readAt: now }).trimEnd(),
      ]);
    });
}

function seamTime(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(text) || Number.isNaN(Date.parse(text)))
    throw new CliError('--seam is an ISO 8601 time with an offset, such as 2026-12-01T00:00:00Z.');
  return new Date(text);
}

async function readExports({ url, project, file, key = process.env.POSTHOG_API_KEY }: ImportOptions) {
  const { fetchPosthogExports, readPosthogFile } = await import('../import/posthog_exports.ts');
  if (file !== undefined) {
    if (url !== undefined) throw new CliError('Pass either --url or --file.');
    return { exports: readPosthogFile(file), origin: file === '-' ? 'stdin' : file };
  }
  if (url === undefined || project === undefined) throw new CliError('Pass --url and --project, or --file.');
  if (key === undefined || key === '')
    throw new CliError('No API key of PostHog: set POSTHOG_API_KEY, or pass --key.');
  const exports = await fetchPosthogExports({ url, project, key });
  return { exports, origin: `project ${project} at ${new URL(url).host}` };
}
