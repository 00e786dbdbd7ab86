/** The explorer as a page of its own. */

import { Explorer } from "./explore";

void new Explorer(document.body).start();
