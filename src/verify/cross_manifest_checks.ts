import { checkedRowsAgain } from './check_manifest.ts';
import type { CheckContext, ManifestCheck } from './manifest_check.ts';
import { intervalOf } from './ranges.ts';
import { rowsInBoth } from './compare_rows.ts';
import { coverageOf } from './coverage.ts';
import type { Finding } from './report.ts';
import { inOrder, microsecondText, sorted, within } from './row_order.ts';
import type { VerifiedRow } from './row.ts';
import { createFindingCollector } from './finding_collector.ts';

/** Finds time that two manifests cover, and the rows that are in both. */
export async function findOverlaps(
  context: CheckContext,
  checks: readonly ManifestCheck[],
): Promise<Finding[]> {
  const intervals = checks.map((check) => ({ ...intervalOf(check.found.manifest), check }));
  const { overlaps } = coverageOf(intervals, { from: null, to: null });
  const findings: Finding[] = [];
  for (const { shared, one, other } of overlaps) {
    const collector = createFindingCollector(shared, other.check.found.name);
    collector.add(
      'overlap',
      other.check.found.name,
      `${one.start} to ${one.end} and ${other.start} to ${other.end} both have a manifest; the other one is ${one.check.found.name}.`,
    );
    if (canBeCompared(one.check, other.check)) {
      collector.hint('duplicate', `They are in ${one.check.found.name} as well.`);
      const [left, right] = [one, other].map(({ check }) =>
        within(rowsOf(context, check), shared, () => undefined),
      );
      if (left && right) for await (const { id } of rowsInBoth(left, right)) collector.row('duplicate', id);
    }
    findings.push(...collector.findings());
  }
  return findings;
}

/** Whether two manifests have rows of one model that are known by their keys, and in order or few enough to be sorted. */
const canBeCompared = (one: ManifestCheck, other: ManifestCheck): boolean =>
  one.found.manifest.model === other.found.manifest.model &&
  [one, other].every(({ source_rows, hasKeys }) => source_rows !== null && hasKeys);

/** Looks for rows of other intervals in the manifests where they belong: a row that is there too is doubled. */
export async function reportMisplacedRows(
  context: CheckContext,
  checks: readonly ManifestCheck[],
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const homeOf = homesOf(checks);
  for (const check of checks.filter(({ misplacedRows }) => misplacedRows.length > 0)) {
    const collector = createFindingCollector(intervalOf(check.found.manifest), check.found.name);
    for (const [home, misplacedRows] of Map.groupBy(check.misplacedRows, (misplacedRow) =>
      homeOf(misplacedRow, check),
    )) {
      const atHome = home ? await keysAtHome(context, home, misplacedRows) : new Set<string>();
      for (const misplacedRow of misplacedRows) {
        collector.row(atHome.has(keyText(misplacedRow)) ? 'duplicate' : 'unexpected', misplacedRow.id);
        if (home && atHome.has(keyText(misplacedRow)))
          collector.hint('duplicate', `They belong into ${home.found.name} and are there.`);
        else collector.hint('unexpected', 'Some belong to another interval.');
      }
    }
    findings.push(...collector.findings());
  }
  return findings;
}

/** Finds objects that two manifests name. */
export function findSharedFiles(checks: readonly ManifestCheck[]): Finding[] {
  const owners = new Map<string, ManifestCheck>();
  const findings: Finding[] = [];
  for (const check of checks) {
    const { manifest, location } = check.found;
    for (const key of new Set(manifest.files.map((file) => file.key))) {
      const name = location.reader.nameOf(key);
      const owner = owners.get(name);
      if (!owner) owners.set(name, check);
      else {
        const collector = createFindingCollector(intervalOf(manifest), check.found.name);
        collector.add(
          'file_shared',
          name,
          `Both ${owner.found.name} and ${check.found.name} name this object.`,
        );
        findings.push(...collector.findings());
      }
    }
  }
  return findings;
}

/** Says where rows of other intervals belong. */
function homesOf(
  checks: readonly ManifestCheck[],
): (misplacedRow: VerifiedRow, from: ManifestCheck) => ManifestCheck | undefined {
  const homes = checks.map((check) => {
    const { start, end } = intervalOf(check.found.manifest);
    return {
      check,
      model: check.found.manifest.model,
      start: microsecondText(start),
      end: microsecondText(end),
    };
  });
  return ({ inserted_at }, from) =>
    homes.find(
      ({ check, model, start, end }) =>
        check !== from && model === from.found.manifest.model && start <= inserted_at && inserted_at < end,
    )?.check;
}

async function keysAtHome(
  { signal }: CheckContext,
  { found }: ManifestCheck,
  misplacedRows: readonly VerifiedRow[],
): Promise<Set<string>> {
  const wanted = new Set(misplacedRows.map(keyText));
  const there = new Set<string>();
  for await (const row of checkedRowsAgain({ reader: found.location.reader, signal }, found.manifest))
    if (wanted.has(keyText(row))) there.add(keyText(row));
  return there;
}

const keyText = ({ inserted_at, id }: VerifiedRow): string => `${inserted_at} ${id}`;

function rowsOf({ signal }: CheckContext, { found, disordered }: ManifestCheck): AsyncGenerator<VerifiedRow> {
  const rows = checkedRowsAgain({ reader: found.location.reader, signal }, found.manifest);
  return (disordered ? sorted : inOrder)(rows);
}
