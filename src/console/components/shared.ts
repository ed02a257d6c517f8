// What pages share, in one module that every page imports: the bundler makes one file of it, where it would make one of each
// module for each set of pages that import it, and a page waits for few requests.
import './actions.ts';
import './destination_test.ts';
import './field.ts';
import './in_words.ts';
import './interval_cells.ts';
import './moment.ts';
import './page.ts';
import './plot.ts';
import './runs.ts';
import './statuses.ts';
import './table.ts';
import './term.ts';
import '../keyboard.ts';
