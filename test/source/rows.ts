import { readSettings } from '../../src/config/settings.ts';
import { createGrowingBuffer } from '../../src/encoding/growing_buffer.ts';
import { appendJsonLines } from '../../src/encoding/json_lines.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import type { Page, Source } from '../../src/source/source.ts';

/** A source with settings of its own. */
export const sourceOf = (url: string, settings: Record<string, string | number> = {}): Source =>
  createSource({
    sourceUrl: url,
    settings: readSettings({
      DATABASE_URL: url,
      EXPORTD_SETTLE_MS: '0',
      ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)])),
    }),
  });

/** The rows of a page as they would be in a file. */
export function rowsOf({ block, columns }: Page): Record<string, unknown>[] {
  const text = createGrowingBuffer(1024);
  appendJsonLines(text, block, columns);
  const lines = text.bytes.toString('utf8', 0, text.length).split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

export async function collect(pages: AsyncIterable<Page>): Promise<Page[]> {
  const collected: Page[] = [];
  for await (const page of pages) collected.push(page);
  return collected;
}

export const neverAborted = (): AbortSignal => new AbortController().signal;
