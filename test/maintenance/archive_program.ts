import { readSettings } from '../../src/config/settings.ts';
import { createPool } from '../../src/journal/database.ts';
import { archiveJournal, openArchive } from '../../src/maintenance/archive_journal.ts';

/** Archives the journal, and kills itself after the step that KILLED_AFTER names. */
const { KILLED_AFTER: killedAfter, EVENTS_PER_FILE: eventsPerFile, ...environment } = process.env;
const settings = readSettings(environment);
const store = openArchive(settings, new AbortController().signal);
if (!store) throw new Error('There is no archive.');
await archiveJournal(
  createPool(settings.DATABASE_URL, { max: 2 }),
  store,
  {
    historyMs: 0,
    eventsPerFile: Number(eventsPerFile),
    onStep: (step) => {
      if (step === killedAfter) process.kill(process.pid, 'SIGKILL');
    },
  },
  () => false,
);
process.exit();
