/** Summaries of timers and activities in the Temporal UI. They are no part of what a replay compares. */

/** Temporal limits a summary to 400 bytes of JSON; characters may have several. */
const maxLength = 120;

/** The end of a timer, and what it waits for: `until 2026-11-29 14:00:12 UTC: the next interval`. */
export function until(milliseconds: number, purpose: string): { readonly summary: string } {
  // In workflows Date.now() is deterministic: replays return the recorded time.
  const end = new Date(Date.now() + milliseconds).toISOString().slice(0, 19).replace('T', ' ');
  return { summary: truncate(`until ${end} UTC: ${purpose}`) };
}

/** Cuts a text that may be longer than a summary. */
export const truncate = (text: string): string =>
  text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;

/** `1,234 rows`. */
export const rowsText = (rows: number): string =>
  `${String(rows).replace(/\B(?=(\d{3})+$)/g, ',')} ${rows === 1 ? 'row' : 'rows'}`;

/** Adds what a workflow is to how far it is, both in Markdown. */
export const withDetails = (progress: string, details: string | undefined): string =>
  details === undefined ? progress : `${progress}\n\n${details}`;
