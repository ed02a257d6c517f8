// Writes the table of all settings into README.md of this folder: node src/config/write_settings_table.ts
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withSettingsTable } from './settings_table.ts';

const path = join(import.meta.dirname, 'README.md');
writeFileSync(path, withSettingsTable(readFileSync(path, 'utf8')));
