import type { ExportedFile, FileTotals } from './exported_files.ts';
import type { Fingerprint } from './fingerprint.ts';
import { counted } from './in_words.ts';

/**
 * How the source compares with the manifest that a run replaces.
 * - `same_rows`: both have the same rows.
 * - `every_row_present`: every row of the manifest is in the source, compared by key.
 * - `shrink_allowed`: they differ, and the run may publish what the source has.
 * - `late_rows_added`: the source lacks rows of the manifest, and has others. The run keeps the files of the manifest and adds
 *   one of the others.
 * - `not_comparable`: nothing shows that a row is missing, and nothing proves that none is. The older files stay.
 * - `removal_decided`: the source lacks rows of the manifest, and a person has decided to remove these and no others.
 * - `rows_kept`: the source lacks rows of the manifest and has no others, and a person has decided to keep these. The run publishes nothing.
 * - `rows_missing`: the source lacks rows of the manifest. The run must not publish.
 */
export type ReplacementOutcome =
  | 'same_rows'
  | 'every_row_present'
  | 'shrink_allowed'
  | 'late_rows_added'
  | 'not_comparable'
  | 'removal_decided'
  | 'rows_kept'
  | 'rows_missing';

/** The numbers of rows that a comparison found. */
export interface MissingRows {
  /** Rows of the manifest that the source no longer has. If keys could not be read, at least as many. */
  readonly missing_rows: number;
  /** Rows of the manifest, with the rejected ones. */
  readonly bucket_rows: number;
  /** Rows of the source, under the selection of the manifest. */
  readonly source_rows: number;
}

/** The result of comparing the source with the manifest that a run replaces. */
export interface ReplacementCheck extends MissingRows {
  /** The run that published the manifest, and its generation. */
  readonly replaced: { readonly run_id: string; readonly generation: number };
  readonly outcome: ReplacementOutcome;
  /**
   * The rows of the source that were compared, under the selection of the manifest; null when nothing depends on them.
   * Later rows of the source are compared with them, because rows may be deleted after the check.
   */
  readonly source: Fingerprint | null;
  /** The generation whose rows were compared; null when it was checked before the export. */
  readonly generation: number | null;
  /** Which rows the source lacks, if it lacks some. */
  readonly missing?: Fingerprint;
  /** The files to which the run adds late rows. */
  readonly base?: BaseFiles;
}

/** The files of a manifest to which a run adds late rows. */
export interface BaseFiles {
  readonly files: FileTotals;
  readonly rejected_file: ExportedFile | null;
  /** How many late rows were found, and whether there are more than one run adds. */
  readonly late_rows: number;
  readonly has_more: boolean;
  /** The run whose stream has the keys of the late rows: this one, or the one that it continues. */
  readonly listed_by: string;
}

/** Outcomes after which the published run contains every row of the manifest that it replaces. */
export const coversReplaced = ({ outcome }: Pick<ReplacementCheck, 'outcome'>): boolean =>
  outcome === 'same_rows' || outcome === 'every_row_present';

/** The source lacks rows of the manifest that the run would replace. The message says what to do. */
export class RowsMissingInSource extends Error {
  override readonly name = 'RowsMissingInSource';

  constructor(
    { missing_rows, bucket_rows, source_rows, replaced }: ReplacementCheck,
    interval: { readonly start: string; readonly end: string },
  ) {
    const newRows = source_rows - (bucket_rows - missing_rows);
    super(
      `The source no longer has ${missing_rows.toLocaleString('en')} of the ${counted(bucket_rows, 'row')} that were exported for ${interval.start} to ` +
        `${interval.end}; it has ${counted(source_rows, 'row')}${newRows > 0 ? `, at least ${newRows.toLocaleString('en')} of them not exported yet` : ''}. ` +
        `Nothing was published, and generation ${replaced.generation} and its files stay. ` +
        `Decide whether to keep these rows or to remove them from the bucket (exportd export difference)${newRows > 0 ? '; if they are kept, the new rows are not exported' : ''}.`,
    );
  }
}
