import { Document, isMap, isSeq, Scalar } from 'yaml';
import { counted } from '../../domain/in_words.ts';
import type { TranslatedExport } from './translate.ts';

/** What the first comment of a file says. */
interface Origin {
  /** Where the exports were read: a URL and project, or the name of a file. */
  readonly origin: string;
  readonly readAt: Date;
}

/** Writes translated exports as a file for `exportd apply`, with a comment for all that a person has to know or decide. */
export function importedFile(translated: readonly TranslatedExport[], { origin, readAt }: Origin): string {
  const included = translated.filter(({ declaration }) => declaration !== null);
  const leftOut = translated.filter(({ left_out }) => left_out !== null);
  const document = new Document({ exports: included.map(({ declaration }) => declaration) });
  const items = document.get('exports');
  if (isSeq(items))
    for (const [index, one] of included.entries()) {
      const item = items.items[index];
      if (!isMap(item)) continue;
      for (const [field, variable] of Object.entries(one.secrets ?? {})) {
        const value = new Scalar(variable);
        value.tag = '!env';
        item.setIn(['destination', 'config', field], value);
      }
      item.commentBefore = commentOf(exportComment(one, readAt));
      item.spaceBefore = index > 0;
    }
  // Above `exports:`, which would take the comment of an empty document.
  document.commentBefore = commentOf(fileComment(included, { origin, readAt }));
  if (leftOut.length > 0)
    document.comment = commentOf([
      'Not in this file, and unchanged in PostHog:',
      ...leftOut.map(
        ({ posthog, left_out }) =>
          `- ${JSON.stringify(posthog.name)} (${posthog.id ?? 'no id'}): ${left_out}`,
      ),
    ]);
  return document.toString({ lineWidth: 0 });
}

function fileComment(included: readonly TranslatedExport[], { origin, readAt }: Origin): string[] {
  const variables = [...new Set(included.flatMap(({ secrets }) => Object.values(secrets ?? {})))].sort();
  const decisions = included.reduce((sum, one) => sum + one.decisions.length, 0);
  const lastApply = included
    .filter(({ seam }) => seam !== null && Date.parse(seam.first.start) > readAt.getTime())
    .map(({ seam }) => seam?.first.end ?? '')
    .sort()[0];
  const head = `Batch exports of ${origin}, read at ${instant(readAt.toISOString())} for "exportd apply". Nothing was changed in PostHog.`;
  if (included.length === 0) return [head];
  return [
    head,
    '',
    ...(decisions === 0
      ? []
      : [
          `DECIDE marks ${counted(decisions, 'problem')}. "exportd apply" rejects the file until you have solved all.`,
        ]),
    `1. Set ${variables.join(', ')}: PostHog returns no secrets.`,
    ...(lastApply === undefined
      ? ['2. exportd apply -f <this file>']
      : [
          `2. exportd apply -f <this file>, before ${instant(lastApply)}, when the first interval of exportd ends. If it is later, export what has ended since the seam:`,
          backfillCommand('<seam>', '<now>'),
        ]),
    '3. Before its seam, give each export in PostHog the end_at that the comment above it names. Until the seam PostHog exports as before, and exportd waits.',
    '',
    'An interval has the rows that were inserted in it. PostHog takes the time at which it ingested an event, exportd the column inserted_at of its source. A row that has one of them before the seam and the other after it is in both products or in neither: compare the uuids of the two intervals at the seam.',
    'Start no backfill or retry in PostHog for intervals older than 8 days: it selects those by timestamp, and finds rows that exportd has too.',
  ];
}

/** The comment of an export: what happens at the seam, then what to decide, then what is different. */
function exportComment(one: TranslatedExport, readAt: Date): string[] {
  const { posthog, seam, decisions, notes } = one;
  const id = posthog.id ?? '<id>';
  const path = `/api/projects/${posthog.team_id ?? '<project>'}/batch_exports/${id}/`;
  if (seam === null) return [];
  const at = instant(seam.first.start);
  const hasPassed = Date.parse(seam.first.start) <= readAt.getTime();
  const isPaused = one.declaration?.paused === true;
  const isOver = seam.until !== null && Date.parse(seam.until) <= readAt.getTime();
  const lastEnd = isOver ? instant(seam.until) : '<now>';
  return [
    `${JSON.stringify(posthog.name)}, ${id}`,
    `Seam: ${at}. PostHog exports the intervals up to ${instant(seam.last.start)} – ${at}, exportd those from ${at} – ${instant(seam.first.end)} on.`,
    ...(seam.stopsThere
      ? [
          `${hasPassed ? 'Stop it in PostHog now.' : 'Before then, stop it in PostHog.'} Delete it there when the run of its last interval is Completed:`,
          `${command}PATCH ${path} {"end_at": "${at}"}`,
        ]
      : ['It is paused in PostHog, and its completed runs end at the seam. Do not unpause it there.']),
    ...(isPaused ? ['It is paused here too: exportd export unpause <id>.'] : []),
    ...(hasPassed
      ? ['The seam has passed. After the apply, export what has ended since:', backfillCommand(at, lastEnd)]
      : []),
    ...decisions.map((sentence) => `DECIDE: ${sentence}`),
    ...notes,
  ];
}

/** What begins a line that people copy, which is not folded. */
const command = '  ';

const backfillCommand = (start: string, end: string): string =>
  `${command}exportd export backfill <id> --start-at ${start} --end-at ${end} --only missing`;

/** A time in UTC without a fraction that is zero. */
const instant = (time: string): string => new Date(time).toISOString().replace('.000Z', 'Z');

const maxLineLength = 110;

/** The lines of a comment, folded. A text of PostHog cannot end the comment: each white space becomes a space. */
const commentOf = (sentences: readonly string[]): string =>
  sentences
    .flatMap(fold)
    .map((line) => (line === '' ? '' : ` ${line}`))
    .join('\n');

function fold(sentence: string): string[] {
  const isCommand = sentence.startsWith(command);
  const lines = [isCommand ? ' ' : ''];
  // Also the characters that YAML or a terminal would take for the end of a line.
  for (const word of sentence.trim().split(/[\s\p{Cc}]+/u)) {
    const line = lines.at(-1) ?? '';
    if (!isCommand && line !== '' && line.length + word.length >= maxLineLength) lines.push(`  ${word}`);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
