import { resultTable } from '../result_table.ts';
import type { ResultTable } from '../result.ts';
import type { SavedResult } from '../saved_result.ts';
import { workersResultTables } from '../workers/result_table.ts';

/** A Markdown page with the charts, and the tables and machines of the results. */
export function figuresPage(saved: readonly SavedResult[], charts: readonly string[]): string {
  const sections = saved.flatMap((one) => {
    const { started_at, machine } = one.result;
    const title =
      one.benchmark === 'exports'
        ? `${one.result.events.toLocaleString('en')} events, measured ${one.result.repeat === 1 ? 'once' : `${String(one.result.repeat)} times`}`
        : 'Several workers';
    const tables = one.benchmark === 'exports' ? [resultTable(one.result)] : workersResultTables(one.result);
    return [
      `## ${title}`,
      `Measured at ${started_at} on ${String(machine.cpus)} cores (${machine.cpu_model}), Node ${machine.node}, PostgreSQL ${machine.postgresql}.`,
      ...tables.flatMap(markdownTable),
    ];
  });
  const images = charts.map((name) => `![${name.replace('.svg', '')}](${name})`);
  return `${['# Figures', '`exportd bench plot` writes this page from the results beside it.', ...images, ...sections].join('\n\n')}\n`;
}

function markdownTable({ title, headings, rows }: ResultTable): string[] {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const padded = rows.map((row) => headings.map((_, column) => row[column] ?? ''));
  const table = [line(headings), line(headings.map(() => '---')), ...padded.map(line)].join('\n');
  return title === undefined ? [table] : [title, table];
}
